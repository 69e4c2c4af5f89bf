//go:build compose

package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestDevOverlayRunsOnNode installs the overlay on a node, and declares tuples while pods are killed and rolled. Then
// it uninstalls everything.
func TestDevOverlayRunsOnNode(t *testing.T) {
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

func samplesAreReady(t *testing.T, m *machine) {
	t.Helper()
	for _, file := range []string{"store.yaml", "impliedroles.yaml", "iam.yaml"} {
		for i, isReady := range applySamples(t, m, file) {
			if file != "impliedroles.yaml" { // Rules have no condition Ready.
				eventually(t, soon, fmt.Sprintf("object %d of %s is ready", i, file), isReady)
			}
		}
	}
}

// takenAway uninstalls everything, in the order of docs/operate/uninstall.md.
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
