package decide

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/entail-dev/entail/services/internal/iam/world"
)

// How much is asked: of so many worlds, after so many changes, so often.
const (
	states    = 6
	changes   = 12
	questions = 80
)

// worlds make a million questions, or fewer where mutants are looked for.
func worlds(t *testing.T) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(os.Getenv("WORLDS"), 10, 64)
	if err != nil {
		return 2100
	}
	return n
}

// What the index answers is what the declared objects say, whatever they were before.
func TestTheIndexDecidesAsTheObjectsSay(t *testing.T) {
	asked, granted := 0, 0
	for seed := range worlds(t) {
		w, before, r := world.New(seed), told{}, rand.New(rand.NewPCG(seed, 0))
		x := New(w.Trusted)
		for state := range states {
			before = before.tell(r, x, w)
			n := world.NewNaive(w)
			for range questions {
				request := w.Ask()
				q, want := question(request), n.Allows(request)
				if _, got := x.Decide(q); got != want {
					t.Fatalf("world %d, state %d: the index says %v, the objects say %v, to %+v", seed, state, got, want, request)
				}
				asked++
				if want {
					granted++
				}
			}
			for range changes {
				w.Change()
			}
		}
		x.emptied(t, before)
	}
	t.Logf("%d questions, %d allowed", asked, granted)
	if granted < asked/20 || granted > asked/2 {
		t.Error("the questions do not tell much")
	}
}

// emptied tells an index that all is gone: it must hold nothing any more.
func (x *Index) emptied(t *testing.T, before told) {
	t.Helper()
	for _, o := range before {
		set(x, o, nil)
	}
	for what, n := range map[string]int{
		"resources": len(x.resources), "roles": len(x.roles), "heirs": len(x.heirs), "users": len(x.users),
		"accounts": len(x.accounts) + len(x.accountNames), "groups": len(x.groups),
		"memberships": len(x.memberships) + len(x.membershipsOf) + len(x.membershipsIn),
		"places":      len(x.places), "bindings": len(x.bindings), "principals": len(x.principals),
	} {
		if n > 0 {
			t.Fatalf("%d %s are left", n, what)
		}
	}
}

func question(r world.Request) Question {
	return Question{
		Subject:    Subject{User: r.User, Account: r.Account, Groups: r.Groups},
		Permission: r.Permission, Type: r.Type, Namespace: r.Namespace, Name: r.Name, There: r.There,
	}
}
