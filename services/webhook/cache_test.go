package webhook

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/seeds"
)

// grove is a decider by a fake OpenFGA. Users can be bound to all trees.
type grove struct {
	*openFGADecider
	answers *answers
	store   *corev1alpha1.Store
	age     time.Duration
}

func newGrove() *grove {
	g := &grove{answers: &answers{}}
	g.openFGADecider, g.store = asking(g.answers)
	g.cache = newAnswerCache(100, func() time.Duration { return g.age })
	viewer := &iamv1alpha1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "viewer", UID: "3"}}
	viewer.Spec.IncludedPermissions = []string{"a/trees.get"}
	g.told().SetRole("n", "viewer", viewer)
	return g
}

// bind declares that a user may get every tree, or removes the declaration.
func (g *grove) bind(user string, may bool) {
	if !may {
		g.told().SetBinding("n", user, nil)
		return
	}
	g.told().SetUser(user, &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: user, UID: "1"}})
	g.bindTo(user, iamv1alpha1.Subject{Kind: iamv1alpha1.UserKind, Name: user, UID: "1"})
}

func (g *grove) bindTo(name string, subject iamv1alpha1.Subject) {
	g.told().SetBinding("n", name, bindingOf(subject))
}

// ask decides a question, and reports whether OpenFGA was called.
func (g *grove) ask(t *testing.T, q authz.Query) (allowed, asked bool) {
	t.Helper()
	before := len(g.answers.asked)
	_, allowed, err := g.Decide(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return allowed, len(g.answers.asked) > before
}

func TestAnswerCacheReturnsAgreedAnswer(t *testing.T) {
	for _, may := range []bool{true, false} {
		g := newGrove()
		g.bind("alice", may)
		g.answers.allowed = may
		for i := range 3 {
			if allowed, asked := g.ask(t, treeOf("alice")); allowed != may || asked != (i == 0) {
				t.Errorf("answer %d: got allowed %t, OpenFGA called %t; want allowed %t", i, allowed, asked, may)
			}
		}
	}
}

// TestAnswerCacheDropsOutdatedAnswer lets OpenFGA always answer yes. At first, alice is declared to be
// allowed.
func TestAnswerCacheDropsOutdatedAnswer(t *testing.T) {
	for name, change := range map[string]func(*grove, *authz.Query){
		"who was allowed is not declared to be": func(g *grove, _ *authz.Query) { g.bind("alice", false) },
		"another asks":                          func(_ *grove, q *authz.Query) { q.User = "bob" },
		"another object is asked for":           func(_ *grove, q *authz.Query) { q.Name = "elm" },
		"the request comes with more":           func(_ *grove, q *authz.Query) { q.Groups = []string{"system:staff"} },
		"the store is another": func(g *grove, _ *authz.Query) {
			g.store.Status.StoreID, g.store.Spec.Adoption = "T", corev1alpha1.AdoptionAlways
		},
		"the model is another":            func(g *grove, _ *authz.Query) { g.store.Status.AuthorizationModelID = "N" },
		"the index may be too old":        func(g *grove, _ *authz.Query) { g.age = maxAge + 1 },
		"answer expired":                  func(*grove, *authz.Query) { backoff.Sleep(context.Background(), keptFor+1) },
		"another index allows it to none": func(g *grove, _ *authz.Query) { g.openFGADecider.index = newGrove().index },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g, q := newGrove(), treeOf("alice")
				g.bind("alice", true)
				g.bind("bob", true)
				g.bindTo("staff", iamv1alpha1.Subject{Kind: iamv1alpha1.GroupKind, Name: "system:staff"})
				g.answers.allowed = true
				first, _ := g.ask(t, q)
				_, again := g.ask(t, q)
				if !first || again {
					t.Fatalf("got allowed %t, OpenFGA called again %t", first, again)
				}
				change(g, &q)
				if _, asked := g.ask(t, q); !asked {
					t.Error("OpenFGA was not called")
				}
			})
		})
	}
}

func TestAnswerCacheSkipsLongKeys(t *testing.T) {
	g, q := newGrove(), treeOf("alice")
	q.Groups, g.answers.allowed = bound(g.told(), maxContext), true
	for range 2 {
		if _, asked := g.ask(t, q); !asked {
			t.Error("OpenFGA was not called")
		}
	}
}

func TestAnswerCacheSkipsRevokedAnswer(t *testing.T) {
	g := newGrove()
	g.bind("alice", true)
	g.answers.allowed = true
	g.backend = during{g.answers, func() { g.bind("alice", false) }}
	if allowed, _ := g.ask(t, treeOf("alice")); !allowed {
		t.Fatal("the answer of OpenFGA was not used")
	}
	g.backend = g.answers
	g.bind("alice", true) // Declared again, but OpenFGA does not have it yet.
	g.answers.allowed = false
	if allowed, asked := g.ask(t, treeOf("alice")); allowed || !asked {
		t.Errorf("got allowed %t, OpenFGA called %t", allowed, asked)
	}
}

// during is a backend that calls a function before each answer.
type during struct {
	*answers
	what func()
}

func (d during) Check(ctx context.Context, r *openfgav1.CheckRequest) (*openfgav1.CheckResponse, error) {
	defer d.what()
	return d.answers.Check(ctx, r)
}

// follower is an OpenFGA that receives declared changes some time later.
type follower struct {
	answers
	has map[string]bool
}

func (f *follower) Check(_ context.Context, r *openfgav1.CheckRequest) (*openfgav1.CheckResponse, error) {
	return &openfgav1.CheckResponse{Allowed: f.has[r.GetTupleKey().GetUser()]}, nil
}

// TestAnswerCacheFollowsRandomChanges makes random changes and checks three invariants. No answer allows access that
// neither the objects nor OpenFGA allow at that moment. No kept answer allows access that the objects do not. At rest,
// every answer is that of OpenFGA.
func TestAnswerCacheFollowsRandomChanges(t *testing.T) {
	for seed := range seeds.SeedRange(t, 300) {
		random := rand.New(rand.NewPCG(seed, 1))
		g := newGrove()
		f := &follower{answers: answers{owners: g.answers.owners}, has: map[string]bool{}}
		g.backend = f
		declared := map[string]bool{}
		for step := range 200 {
			user := fmt.Sprint("user-", random.IntN(3))
			switch random.IntN(4) {
			case 0:
				declared[user] = !declared[user]
				g.bind(user, declared[user])
			case 1:
				f.has[iam.UserSubject(user)] = declared[user]
			default:
				had := f.has[iam.UserSubject(user)]
				if _, allowed, err := g.Decide(t.Context(), treeOf(user)); err != nil || allowed && !declared[user] && !had || allowed != had && allowed != declared[user] {
					t.Fatalf("seed %d, step %d: %s: got allowed %t (%v); declared %t, in OpenFGA %t", seed, step, user, allowed, err, declared[user], had)
				}
			}
		}
		for user, may := range declared {
			f.has[iam.UserSubject(user)] = may
			if _, allowed, err := g.Decide(t.Context(), treeOf(user)); err != nil || allowed != may {
				t.Fatalf("seed %d, at rest: %s: got allowed %t (%v), want %t", seed, user, allowed, err, may)
			}
		}
	}
}

// BenchmarkAnswerCache compares a kept answer with a call of a backend that takes no time.
func BenchmarkAnswerCache(b *testing.B) {
	for name, kept := range map[string]bool{"kept": true, "asked": false} {
		b.Run(name, func(b *testing.B) {
			g := newGrove()
			g.bind("alice", true)
			g.backend = always{g.answers}
			if !kept {
				g.cache = nil
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, allowed, err := g.Decide(b.Context(), treeOf("alice")); !allowed || err != nil {
					b.Fatal(allowed, err)
				}
			}
		})
	}
}

// always is a backend that answers yes and records nothing.
type always struct{ *answers }

func (always) Check(context.Context, *openfgav1.CheckRequest) (*openfgav1.CheckResponse, error) {
	return &openfgav1.CheckResponse{Allowed: true}, nil
}
