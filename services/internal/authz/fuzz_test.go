package authz

import (
	"math/rand/v2"
	"testing"

	"github.com/entail-dev/entail/services/internal/iam/world"
)

// Whatever is asked, in whichever words, the index answers what the declared objects say.
func FuzzQuestions(f *testing.F) {
	for seed := range uint64(20) {
		w := world.New(seed)
		q := w.Ask()
		group := ""
		if len(q.Groups) > 0 {
			group = q.Groups[0]
		}
		f.Add(seed, q.User, q.Account, group, q.Permission, q.Type, q.Namespace, q.Name, q.There, q.ParentType, q.ParentName)
	}
	f.Fuzz(func(t *testing.T, seed uint64, user, account, group, permission, typ, namespace, name string, there bool, parentType, parentName string) {
		if user != "" {
			account = ""
		}
		w, r := world.New(seed), rand.New(rand.NewPCG(seed, 0))
		x := New(w.IsTrusted)
		told{}.tell(r, x, w)
		request := world.Request{
			User: user, Account: account, Groups: []string{group}, Permission: permission, Type: typ, Namespace: namespace, Name: name, There: there,
			ParentType: parentType, ParentName: parentName,
		}
		q := question(request)
		_, got := x.Decide(q)
		if want := world.NewNaive(w).Allows(request); got != want {
			t.Errorf("world %d: the index says %v, the objects say %v, to %+v", seed, got, want, request)
		}
		if e := x.Explain(q); e.Allowed != got {
			t.Errorf("world %d: %+v is explained by %+v", seed, request, e)
		}
	})
}
