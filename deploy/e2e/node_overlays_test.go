//go:build compose

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

// again is within which time changes are applied when a part of several was lost: two elections of NATS, of up to 9 s each when
// votes are split, and a turn that is taken over.
const again = 30 * time.Second

// TestOverlaysOnANode is one story: the second overlay is installed where the first was taken away.
func TestOverlaysOnANode(t *testing.T) {
	if t.Run("one of each", one) {
		t.Run("several of each", several)
	}
}

func one(t *testing.T) {
	overlay := ours(t, "dev")
	m := installed(t, overlay)
	everyServiceIsItsOwn(t, m, 1)
	samplesAreReady(t, m)
	asked(t, m)
	m.http.Transport = bearer(m.token(t))

	l, client := loaded(t, m.objects(t).Resource(resource("stores")), 1), m.tuples()
	l.follow(t, client, "changes are applied")
	killed(t, podsOf(t, "tuple-sync")[0])
	l.follow(t, client, "changes are applied after a pod was killed")
	kubectl(t, "-n", namespace, "rollout", "restart", "statefulset/nats")
	kubectl(t, "-n", namespace, "rollout", "status", "statefulset/nats", "--timeout=120s")
	l.follow(t, client, "changes are applied after the bus was lost")
	answeredMeanwhile(t, m, func() {
		kubectl(t, "-n", namespace, "rollout", "restart", "deployment/watcher", "deployment/store-sync", "deployment/tuple-sync")
		rolledOut(t)
	})
	l.follow(t, client, "changes are applied after deployments were rolled")
	l.stop(t, client)
	takenAway(t, m, overlay)
}

func several(t *testing.T) {
	m := installed(t, ours(t, "ha"))
	everyServiceIsItsOwn(t, m, 2)
	samplesAreReady(t, m)
	m.http.Transport = bearer(m.token(t))
	stores := m.objects(t).Resource(resource("stores"))

	for _, pod := range podsOf(t, "nats") {
		lost(t, m, stores, pod)
	}
	for _, pod := range podsOf(t, "tuple-sync") { // The second is active by then, if the first was.
		lost(t, m, stores, pod)
	}
	leader := kubectl(t, "-n", namespace, "get", "lease", "entail-watcher", "-o", "jsonpath={.spec.holderIdentity}")
	pods := podsOf(t, "watcher")
	i := slices.IndexFunc(pods, func(pod string) bool { return strings.HasPrefix(leader, pod) })
	if i < 0 {
		t.Fatalf("%q leads, of %q", leader, pods)
	}
	lost(t, m, stores, pods[i])
}

func samplesAreReady(t *testing.T, m *machine) {
	t.Helper()
	for _, file := range []string{"store.yaml", "impliedroles.yaml", "iam.yaml"} {
		for i, isReady := range applySamples(t, m, file) {
			if file != "impliedroles.yaml" { // Rules are accepted, and never ready.
				eventually(t, soon, fmt.Sprintf("object %d of %s is ready", i, file), isReady)
			}
		}
	}
}

// lost kills a pod; a change made then is applied in time. Others are killed when all is well again.
func lost(t *testing.T, m *machine, stores dynamic.ResourceInterface, pod string) {
	t.Helper()
	killed(t, pod)
	user := "user:after-" + pod
	addTuple(t, stores, user)
	eventually(t, again, "a change is applied without "+pod, func(ctx context.Context) error {
		return answers(ctx, m, user+" viewer document:roadmap", true)
	})
	rolledOut(t)
}

// takenAway removes everything, in the order that docs/operations.md says.
func takenAway(t *testing.T, m *machine, overlay string) {
	t.Helper()
	if out, code := m.ask(t, "uninstall", "--delete-objects", "--kubeconfig", m.Kubeconfig); code != 0 {
		t.Fatalf("exit code %d: %s", code, out)
	}
	kubectl(t, "delete", "-k", overlay, "--ignore-not-found", "--timeout=120s")
	left := kubectl(t, "get", "customresourcedefinitions,namespaces,clusterroles,clusterrolebindings,validatingwebhookconfigurations,"+
		"validatingadmissionpolicies,validatingadmissionpolicybindings,rolebindings,roles", "--all-namespaces", "-o", "name")
	for name := range strings.FieldsSeq(left) {
		if strings.Contains(name, "entail") || strings.HasPrefix(name, "customresourcedefinition") {
			t.Errorf("%s is left", name)
		}
	}
}

// addTuple makes somebody a viewer.
func addTuple(t *testing.T, stores dynamic.ResourceInterface, user string) {
	t.Helper()
	patch := fmt.Appendf(nil, `[{"op": "add", "path": "/spec/tuples/-", "value": {"user": %q, "relation": "assignee", "object": "role:staff"}}]`, user)
	if _, err := stores.Patch(t.Context(), "demo", types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}
