//go:build integration

package tuplesync_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testbed"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
)

// serveAccountInfos makes the API server serve kcp's AccountInfos until the test ends.
func (b *bed) serveAccountInfos() {
	b.T.Helper()
	kind := kinds.AccountInfos()
	name := kind.Resource + "." + kind.Group
	definitions := b.Resource(kinds.Definitions())
	_, err := definitions.Create(b.T.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"group": kind.Group, "scope": "Cluster",
			"names": map[string]any{"plural": kind.Resource, "singular": strings.ToLower(kind.Kind), "kind": kind.Kind, "listKind": kind.Kind + "List"},
			"versions": []any{map[string]any{
				"name": kind.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(func() {
		err := wait.PollUntilContextTimeout(context.WithoutCancel(b.T.Context()), calm/20, soon, true, func(ctx context.Context) (bool, error) {
			return apierrors.IsNotFound(definitions.Delete(ctx, name, metav1.DeleteOptions{})), nil
		})
		if err != nil {
			b.T.Errorf("definition %s stays: %v", name, err)
		}
	})
}

// accountInfo creates the AccountInfo of a workspace, once that is served.
func (b *bed) accountInfo(account, organization string) {
	b.T.Helper()
	location := func(name string) map[string]any { return map[string]any{"name": name, "originClusterId": "local"} }
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kinds.AccountInfos().Group + "/" + kinds.AccountInfos().Version, "kind": kinds.AccountInfos().Kind,
		"metadata": map[string]any{"name": "account"},
		"spec":     map[string]any{"account": location(account), "organization": location(organization)},
	}}
	testbed.Eventually(b.T, soon, func() error {
		_, err := b.Resource(kinds.AccountInfos()).Create(b.T.Context(), u, metav1.CreateOptions{})
		return err
	})
}

func TestEverybodyIsAMemberOfAnOrganizationAsLongAsItsAccountInfoSaysSo(t *testing.T) {
	b := newBed(t)
	b.serveAccountInfos()
	b.accountInfo("demo", "demo")
	b.Reflector()
	b.serve(func(c *tuplesync.Config) { c.AllowMemberTuples = true })
	b.store("demo")
	b.store("other")
	id, other := b.synced("demo", accounts), b.synced("other", accounts)
	member := []string{"role:authenticated#assignee@user:*", "core_platform-mesh_io_account:local/demo#member@role:authenticated#assignee"}
	b.awaitTuples(id, member...)
	b.Settled()
	b.awaitTuples(other)
	b.Delete(kinds.AccountInfos(), "account")
	b.awaitTuples(id)
	b.accountInfo("team", "demo") // An account in the organization, which is not for everybody.
	b.Settled()
	b.awaitTuples(id)
}
