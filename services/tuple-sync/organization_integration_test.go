//go:build integration

package tuplesync_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
)

// accountInfo creates the AccountInfo of a workspace, once that is served.
func (b *testEnv) accountInfo(account, organization string) {
	b.T.Helper()
	location := func(name string) map[string]any { return map[string]any{"name": name, "originClusterId": "local"} }
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kinds.AccountInfos().Group + "/" + kinds.AccountInfos().Version, "kind": kinds.AccountInfos().Kind,
		"metadata": map[string]any{"name": "account"},
		"spec":     map[string]any{"account": location(account), "organization": location(organization)},
	}}
	testenv.Eventually(b.T, soon, func() error {
		_, err := b.ResourceClient(kinds.AccountInfos()).Create(b.T.Context(), u, metav1.CreateOptions{})
		return err
	})
}

func TestAccountInfoMakesUsersMembers(t *testing.T) {
	b := newTestEnv(t)
	b.Kube.ApplyCRD(t, kinds.AccountInfos())
	b.accountInfo("demo", "demo")
	b.StartReflector()
	b.serve(func(c *tuplesync.Config) { c.AllowMemberTuples = true })
	b.store("demo")
	b.store("other")
	id, other := b.synced("demo", accounts), b.synced("other", accounts)
	member := []string{"role:authenticated#assignee@user:*", "core_platform-mesh_io_account:local/demo#member@role:authenticated#assignee"}
	b.awaitTuples(id, member...)
	b.AwaitNoCalls()
	b.awaitTuples(other)
	b.Delete(kinds.AccountInfos(), "account")
	b.awaitTuples(id)
	b.accountInfo("team", "demo") // An account in the organization, which is not for everybody.
	b.AwaitNoCalls()
	b.awaitTuples(id)
}
