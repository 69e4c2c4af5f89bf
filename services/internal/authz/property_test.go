package authz

import (
	"testing"

	"github.com/entail-dev/entail/services/internal/iam/world"
)

// Sizes of the property tests: states per world, changes between two states, and queries per state.
const (
	states    = 6
	changes   = 12
	questions = 80
)

// emptied removes all objects from an index, and fails the test unless the index is empty then.
func (x *Index) emptied(t *testing.T, before receivedObjects) {
	t.Helper()
	for _, o := range before {
		set(x, o, nil)
	}
	for what, n := range map[string]int{
		"resources": len(x.resources), "roles": len(x.roles), "users": len(x.users),
		"accounts": len(x.accounts) + len(x.accountNames), "groups": len(x.groups),
		"memberships": len(x.memberships) + len(x.membershipsOf) + len(x.membershipsIn) + len(x.belongings),
		"places":      len(x.places), "bindings": len(x.bindings), "principals": len(x.principals),
	} {
		if n > 0 {
			t.Fatalf("%d %s left after removal of all objects", n, what)
		}
	}
}

func newQuery(r world.Request) Query {
	return Query{
		Subject:    Subject{User: r.User, Account: r.Account, Groups: r.Groups},
		Permission: r.Permission, Type: r.Type, Namespace: r.Namespace, Name: r.Name, RequireExists: r.RequireExists,
		Parent: Scope{Type: r.ParentType, Ref: Ref{Name: r.ParentName}},
	}
}
