package authz

import (
	"math/rand/v2"
	"testing"

	"github.com/entail-dev/entail/services/internal/iam/world"
)

// FuzzDecideEqualsNaiveAuthorizer verifies that the answers of the index to any query equal those of the naive
// implementation.
func FuzzDecideEqualsNaiveAuthorizer(f *testing.F) {
	for seed := range uint64(20) {
		w := world.NewRandom(seed)
		q := w.RandomRequest()
		group := ""
		if len(q.Groups) > 0 {
			group = q.Groups[0]
		}
		f.Add(seed, q.User, q.Account, group, q.Permission, q.Type, q.Namespace, q.Name, q.RequireExists, q.ParentType, q.ParentName)
	}
	f.Fuzz(func(t *testing.T, seed uint64, user, account, group, permission, typ, namespace, name string, there bool, parentType, parentName string) {
		if user != "" {
			account = ""
		}
		w, r := world.NewRandom(seed), rand.New(rand.NewPCG(seed, 0))
		x := New(w.IsTrusted)
		receivedObjects{}.tell(r, x, w)
		request := world.Request{
			User: user, Account: account, Groups: []string{group}, Permission: permission, Type: typ, Namespace: namespace, Name: name, RequireExists: there,
			ParentType: parentType, ParentName: parentName,
		}
		q := newQuery(request)
		_, got := x.Decide(q)
		if want := world.NewNaiveAuthorizer(w).Allows(request); got != want {
			t.Errorf("world %d: index %v, naive %v for %+v", seed, got, want, request)
		}
		if e := x.Explain(q); e.Allowed != got {
			t.Errorf("world %d: Explain(%+v) returned %+v", seed, request, e)
		}
	})
}
