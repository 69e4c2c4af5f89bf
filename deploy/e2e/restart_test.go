//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
)

// TestRestartKeepsStateAndEditedSamples edits a sample and restarts. The edit and the store stay until they are
// deleted.
func TestRestartKeepsStateAndEditedSamples(t *testing.T) {
	state := t.TempDir()
	m := up(t, state, "--samples", "deploy/samples")
	objects := m.objects(t)
	stores, models := objects.Resource(resource("stores")), objects.Resource(resource("authorizationmodels"))
	eventually(t, soon, "the samples are ready", func(ctx context.Context) error {
		return errors.Join(ready(ctx, stores, "demo"), ready(ctx, models, "demo-documents"))
	})
	check(t, m, "user:beth viewer document:roadmap", true)
	dropTuplesOf(t, stores, "user:beth")
	edited, storeID := field(t, stores, "metadata", "generation"), field(t, stores, "status", "storeId")
	eventually(t, soon, "the edit has followed", func(ctx context.Context) error {
		return answers(ctx, m, "user:beth viewer document:roadmap", false)
	})
	m.stop(t, syscall.SIGTERM)

	m = up(t, state, "--samples", "deploy/samples")
	objects = m.objects(t)
	stores, models = objects.Resource(resource("stores")), objects.Resource(resource("authorizationmodels"))
	if got := field(t, stores, "metadata", "generation"); got != edited {
		t.Errorf("generation of an edited sample after a restart: got %s, want %s", got, edited)
	}
	if got := field(t, stores, "status", "storeId"); got != storeID || got == "" {
		t.Fatalf("store ID after a restart: got %q, want %q", got, storeID)
	}
	check(t, m, "user:anne editor document:roadmap", true)
	check(t, m, "user:beth viewer document:roadmap", false)

	deletionIsInOrder(t, m, stores, models)
	storeIsGone(t, m, storeID)
	m.stop(t, os.Interrupt)
}

// deletionIsInOrder deletes the store first, whose deletion waits for the model that refers to it.
func deletionIsInOrder(t *testing.T, m *machine, stores, models dynamic.ResourceInterface) {
	t.Helper()
	if err := stores.Delete(t.Context(), "demo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the store tells what its deletion waits for", func(ctx context.Context) error {
		deleting, err := condition(ctx, stores, "demo", "Deleting")
		if err == nil && !strings.Contains(deleting, "demo-documents") {
			err = fmt.Errorf("condition Deleting is %s", deleting)
		}
		return err
	})
	check(t, m, "user:anne editor document:roadmap", true)
	if err := models.Delete(t.Context(), "demo-documents", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "both objects are gone", func(ctx context.Context) error {
		return errors.Join(gone(ctx, models, "demo-documents"), gone(ctx, stores, "demo"))
	})
	eventually(t, soon, "the trace tells of the deletion", func(context.Context) error {
		if trace, _ := m.ask(t, "trace", "store/demo"); !bytes.Contains(trace, []byte(", deleted")) {
			return fmt.Errorf("it is %s", trace)
		}
		return nil
	})
}

// storeIsGone checks in OpenFGA itself that the store is gone.
func storeIsGone(t *testing.T, m *machine, id string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, m.OpenFGAHTTP+"/stores", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || bytes.Contains(body, []byte(id)) {
		t.Errorf("OpenFGA's stores after the deletion: %s, error %v", body, err)
	}
}
