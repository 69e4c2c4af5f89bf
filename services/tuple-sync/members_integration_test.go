//go:build integration

package tuplesync_test

import (
	"fmt"
	"testing"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
	tuplesync "github.com/entail-dev/entail/services/tuple-sync"
)

const accounts = `model
  schema 1.1
type user
type role
  relations
    define assignee: [user, user:*]
type core_platform-mesh_io_account
  relations
    define member: [role#assignee]
`

func TestAccountLabelMakesUsersMembers(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	allow := func(c *tuplesync.Config) { c.AllowMemberTuples = true }
	r := b.serve(allow)
	b.store("demo")
	id := b.synced("demo", accounts)
	label := func(value string) {
		t.Helper()
		b.Patch(kinds.Stores(), "demo", fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, corev1alpha1.AccountNameLabel, value))
	}
	const authenticated = "role:authenticated#assignee@user:*"
	label(`"acme"`)
	b.awaitTuples(id, authenticated, "core_platform-mesh_io_account:local/acme#member@role:authenticated#assignee")
	label(`"other"`)
	b.awaitTuples(id, authenticated, "core_platform-mesh_io_account:local/other#member@role:authenticated#assignee")
	label("null")
	b.awaitTuples(id)
	label(`"acme"`)
	b.awaitTuples(id, authenticated, "core_platform-mesh_io_account:local/acme#member@role:authenticated#assignee")
	b.AwaitNoCalls()
	b.CheckNoWrites("a resync", func() { b.RequestResync(topology.TupleSync) })
	r.Stop()
	b.serve()
	b.awaitTuples(id)
}
