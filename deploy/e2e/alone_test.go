//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/gen/entail/tuple/v1/tuplev1connect"
)

const accounts = `module core
type user
type role
  relations
    define assignee: [user, user:*]
type core_platform-mesh_io_account
  relations
    define member: [role#assignee]`

// TestEntailUpRunsWithoutCheckout runs the program in an empty folder, with another cluster name and settings of a
// service.
func TestEntailUpRunsWithoutCheckout(t *testing.T) {
	dir := t.TempDir()
	flags := []string{"--samples", "builtin", "--cluster", "dev", "--set", "tuple-sync.allow-member-tuples-enabled=true", "--set", "tuple-sync.workers=4"}
	m := upIn(t, dir, ".entail", flags...)
	objects := m.objects(t)
	stores, models := objects.Resource(resource("stores")), objects.Resource(resource("authorizationmodels"))
	eventually(t, soon, "the sample is ready", func(ctx context.Context) error { return ready(ctx, stores, "demo") })

	store := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"coreModule": accounts}}}
	store.SetAPIVersion("core.platform-mesh.io/v1alpha1")
	store.SetKind("Store")
	store.SetName("tenants")
	store.SetLabels(map[string]string{"core.platform-mesh.io/account-name": "acme"})
	if _, err := stores.Create(t.Context(), store, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	everybody := &tuplev1.CheckRequest{Store: "tenants", Key: &tuplev1.TupleKey{
		User: "user:anybody", Relation: "member", Object: "core_platform-mesh_io_account:dev/acme",
	}}
	client := tuplev1connect.NewTupleServiceClient(http.DefaultClient, m.TupleService)
	eventually(t, soon, "everybody is a member", func(ctx context.Context) error {
		answer, err := client.Check(ctx, everybody)
		if err == nil && !answer.GetAllowed() {
			err = errors.New("nobody is")
		}
		return err
	})

	for name, cluster := range map[string]string{"ours": "dev", "nobodys": "root-orgs"} {
		model := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"storeRef": map[string]any{"name": "demo", "cluster": cluster}, "model": "module " + name + "\ntype " + name,
		}}}
		model.SetAPIVersion("core.platform-mesh.io/v1alpha1")
		model.SetKind("AuthorizationModel")
		model.SetName(name)
		if _, err := models.Create(t.Context(), model, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, soon, "the cluster is known by its name", func(ctx context.Context) error { return ready(ctx, models, "ours") })
	for _, typ := range []string{"Merged", "TuplesSynced"} {
		eventually(t, soon, typ+" says which names are meant", func(ctx context.Context) error {
			said, err := condition(ctx, models, "nobodys", typ)
			if err == nil && !strings.Contains(said, `this one is "dev"`) {
				err = fmt.Errorf("it says %s", said)
			}
			return err
		})
	}
	m.stop(t, os.Interrupt)

	again := entail(t, append([]string{"up", "--state-dir", filepath.Join(dir, ".entail"), "--cluster", "other"}, anyPorts()...)...)
	if out, err := again.CombinedOutput(); again.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), `is of cluster "dev"`) {
		t.Errorf("under another name: %v: %s", err, out)
	}
}
