//go:build integration

package tuplesync_test

import (
	"errors"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestUnreadableRecordIsReported(t *testing.T) {
	b, id := demo(t)
	b.module("broken", "demo", first, second)
	b.module("other", "demo")
	b.await(models, "broken", "Synced")
	b.awaitTuples(id, first, second, foreign)

	b.Patch(models, "broken", `{"status":{"ledger":{"revision":7,"encoding":"zstd","data":"bm9uc2Vuc2U="}}}`, "status")
	b.module("broken", "demo", first)
	b.merged("broken")
	if message := b.await(models, "broken", "RecordUnreadable"); !strings.Contains(message, "status.ledger") {
		t.Errorf("the message is %q", message)
	}
	b.AwaitCondition(models, "broken", corev1alpha1.Ready, "RecordUnreadable")
	b.awaitEvent(models, "broken", "RecordUnreadable")
	b.module("other", "demo", third)
	b.merged("other")
	b.await(models, "other", "Invalid") // The others go on: their tuples are judged.
	b.awaitTuples(id, first, second, foreign)

	b.Patch(models, "broken", `{"status":{"ledger":null}}`, "status")
	b.await(models, "broken", "Synced")
	b.awaitTuples(id, first, foreign)
}

// awaitEvent waits for an Event about an object.
func (b *testEnv) awaitEvent(kind kinds.Kind, name, reason string) {
	b.T.Helper()
	client, err := kubernetes.NewForConfig(b.Kube.AdminConfig())
	if err != nil {
		b.T.Fatal(err)
	}
	testenv.Eventually(b.T, soon, func() error {
		events, err := client.CoreV1().Events("").List(b.T.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.InvolvedObject.Kind == kind.Kind && e.InvolvedObject.Name == name && e.Reason == reason {
				return nil
			}
		}
		return errors.New("no such Event")
	})
}
