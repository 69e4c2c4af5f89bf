//go:build compose && nightly

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// takeoverTimeout bounds the time until a change is applied after one of several replicas was lost. It covers two elections of
// NATS, of up to 9 s each when votes are split, and the takeover of a service.
const takeoverTimeout = 30 * time.Second

// TestHAOverlayRunsOnNode kills one replica after another. It runs where the dev overlay was installed and removed before.
func TestHAOverlayRunsOnNode(t *testing.T) {
	m := installed(t, ours(t, "ha"))
	everyServiceIsItsOwn(t, m, 2)
	samplesAreReady(t, m)
	m.http.Transport = bearer(m.token(t))
	stores := m.objects(t).Resource(resource("stores"))

	for _, pod := range podsOf(t, "nats") {
		surviveLossOf(t, m, stores, pod)
	}
	for _, pod := range podsOf(t, "tuple-sync") { // After the loss of the first, the second is the leader.
		surviveLossOf(t, m, stores, pod)
	}
	leader := kubectl(t, "-n", namespace, "get", "lease", "entail-watcher", "-o", "jsonpath={.spec.holderIdentity}")
	pods := podsOf(t, "watcher")
	i := slices.IndexFunc(pods, func(pod string) bool { return strings.HasPrefix(leader, pod) })
	if i < 0 {
		t.Fatalf("leader of watcher: got %q, want one of %q", leader, pods)
	}
	surviveLossOf(t, m, stores, pods[i])
}

// surviveLossOf kills a pod, and requires that a change is applied without it. It returns when every pod is ready
// again.
func surviveLossOf(t *testing.T, m *machine, stores dynamic.ResourceInterface, pod string) {
	t.Helper()
	killed(t, pod)
	user := "user:after-" + pod
	addTuple(t, stores, user)
	eventually(t, takeoverTimeout, "a change is applied without "+pod, func(ctx context.Context) error {
		return answers(ctx, m, user+" viewer document:roadmap", true)
	})
	rolledOut(t)
}

// addTuple makes a user a viewer.
func addTuple(t *testing.T, stores dynamic.ResourceInterface, user string) {
	t.Helper()
	patch := fmt.Appendf(nil, `[{"op": "add", "path": "/spec/tuples/-", "value": {"user": %q, "relation": "assignee", "object": "role:staff"}}]`, user)
	if _, err := stores.Patch(t.Context(), "demo", types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
