//go:build integration

package impliedrole_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	impliedrole "github.com/entail-dev/entail/services/implied-role"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

const (
	held   = `{"metadata":{"finalizers":["example.com/held"]}}`
	unheld = `{"metadata":{"finalizers":null}}`
)

// generates waits until the generated bindings are as wanted, and checks nothing else.
func (b *bed) generates(want string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if got := b.generated(); got != want {
			return fmt.Errorf("generated %q, want %q", got, want)
		}
		return nil
	})
}

func (b *bed) patchRule(name, patch string) {
	b.T.Helper()
	b.Patch(kinds.ImpliedRoles().In(b.namespace), ruleName(name), patch)
}

// TestW3DeletionsThatNobodyToldOfAreSeenByTheNextSnapshot deletes objects while the watcher is stopped. A new snapshot
// then reveals the deletions.
func TestW3DeletionsThatNobodyToldOfAreSeenByTheNextSnapshot(t *testing.T) {
	b := newBed(t)
	m := b.Reflector()
	b.serve()
	b.do("a>b b>c x>y B1=a{u} B2=a{v} B3=x{w}")
	b.becomes("B1:b{u} B1:c{u} B2:b{v} B2:c{v} B3:y{w}")
	b.Settled()
	release := m.Hold()
	b.do("-b>c -x>y -B2")
	b.EmptyBus()
	m.Replay()
	testenv.WriteBarriers(t, b.JS, "local") // The watcher writes them after the snapshot; m is paused.
	b.becomes("B1:b{u}")
	release()
	b.becomes("B1:b{u}")
}

func TestAGeneratedBindingThatIsMadeIndependentIsTheirs(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	b.do("a>b b>c B=a{x}")
	b.becomes("B:b{x} B:c{x}")
	mine := name("B", "b")
	b.patch(mine, `{"metadata":{"labels":{"role.k8s.com/independent":"true"}}}`)
	b.condition("a>b", "Synced", "NameConflict")
	b.reported(mine, "NameConflict")
	b.generates("B:c{x} " + mine + ":c{x}")
	b.Settled()
	was := b.get(mine)
	b.do("-a>b")
	b.generates(mine + ":c{x}")
	b.Settled()
	if now := b.get(mine); now == nil || now.ResourceVersion != was.ResourceVersion {
		t.Errorf("the independent binding became %+v", now)
	}
	b.do("a>b")
	b.patch(mine, `{"metadata":{"labels":{"role.k8s.com/independent":null}}}`)
	b.becomes("B:b{x} B:c{x}")
}

func TestWhatIsBeingDeletedImpliesNothingAnyMore(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	b.do("a>b a>c B1=a{x} B2=a{y}")
	b.becomes("B1:b{x} B1:c{x} B2:b{y} B2:c{y}")
	b.patchRule("a>c", held)
	b.patch("B1", held)
	b.do("-a>c -B1")
	b.generates("B2:b{y}")
	b.Settled()
	b.Quiet("a resync while they are held", func() { b.Resync(topology.ImpliedRole) })
	b.patchRule("a>c", unheld)
	b.patch("B1", unheld)
	b.becomes("B2:b{y}")
}

func TestAGeneratedBindingThatCannotGoIsMadeAgainWhenItHasGone(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	b.do("a>b B=a{x}")
	b.becomes("B:b{x}")
	b.patch(name("B", "b"), held)
	b.do("-" + name("B", "b"))
	b.condition("a>b", "Synced", "Pending")
	b.Quiet("a resync while it is held", func() { b.Resync(topology.ImpliedRole) })
	b.patch(name("B", "b"), unheld)
	b.becomes("B:b{x}")
}

func TestAClusterRoleThatGoesLeavesBindingsAndIsTold(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	going := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "going-cluster"}}
	if _, err := b.typed.RbacV1().ClusterRoles().Create(t.Context(), going, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	other := b.in("other")
	for _, b := range []*bed{b, other} {
		b.do("a>ClusterRole/going-cluster B=a{x}")
		b.becomes("B:ClusterRole/going-cluster{x}")
		b.condition("a>ClusterRole/going-cluster", "ChildRoleFound", "RoleFound")
	}
	was := b.get(name("B", "ClusterRole/going-cluster"))
	b.Delete(kinds.ClusterRoles(), "going-cluster")
	for _, b := range []*bed{b, other} {
		b.condition("a>ClusterRole/going-cluster", "ChildRoleFound", "RoleMissing")
		b.becomes("B:ClusterRole/going-cluster{x}")
	}
	b.do("B=a{x,y}")
	b.becomes("B:ClusterRole/going-cluster{x,y}")
	if now := b.get(was.Name); now.UID != was.UID {
		t.Error("the binding was recreated")
	}
}

func TestANamespaceThatIsStuckInItsDeletionIsLeftInPeace(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	b.serve()
	going := b.in("stuck")
	going.do("a>b B1=a{x} B2=a{y}")
	going.becomes("B1:b{x} B2:b{y}")
	going.patch("B1", held)
	going.patchRule("a>b", held)
	b.DeleteNamespace("stuck")
	going.generates("")
	b.Settled()
	b.Quiet("a resync while it is stuck", func() { b.Resync(topology.ImpliedRole) })
	b.do("a>b B=a{x}")
	b.becomes("B:b{x}")
	going.patch("B1", unheld)
	going.patchRule("a>b", unheld)
	b.AwaitNamespaceGone("stuck")
}

func refusal(r *http.Request) (*http.Response, error) {
	return answer(r, apierrors.NewForbidden(schema.GroupResource{Resource: "something"}, "x", errors.New("refused on purpose")))
}

func TestARevocationThatIsRefusedIsToldAndTriedAgain(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	on, tried := b.obstruct(name("B1", "b"), refusal)
	on.Store(false)
	b.do("a>b c>b B1=a{x} B2=c{y}")
	b.becomes("B1:b{x} B2:b{y}")
	on.Store(true)
	b.do("-a>b")
	if c := b.condition("c>b", "Synced", "Forbidden"); !strings.Contains(c.Message, name("B1", "b")) {
		t.Errorf("message %q does not say which", c.Message)
	}
	if tried.Load() == 0 {
		t.Error("it was not tried")
	}
	on.Store(false)
	b.becomes("B2:b{y}")
}

func TestAStatusThatIsRefusedHoldsUpNothingElse(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	on, tried := b.obstruct(ruleName("a>b")+"/status", refusal)
	b.do("a>b a>c x>y B1=a{u} B2=x{v}")
	b.condition("a>c", "Synced", "Synced")
	b.condition("x>y", "Synced", "Synced")
	b.generates("B1:b{u} B1:c{u} B2:y{v}")
	b.do("B2=x{v,w}")
	b.generates("B1:b{u} B1:c{u} B2:y{v,w}")
	b.calms(tried)
	on.Store(false)
	b.becomes("B1:b{u} B1:c{u} B2:y{v,w}")
}

// TestAStatusOfManyChildrenIsWhatTheAPIServerTakes makes a tree of roles with the longest names, whose characters JSON
// escapes.
func TestAStatusOfManyChildrenIsWhatTheAPIServerTakes(t *testing.T) {
	b := newBed(t)
	b.Reflector()
	const roles = 150
	long := func(i int) infer.Role {
		text := fmt.Sprintf("%04d", i)
		return infer.Role{Name: text + strings.Repeat(`"`, 250-len(text))}
	}
	for i := 1; i < roles; i++ {
		b.rule(fmt.Sprintf("r%04d", i), long((i-1)/2), long(i), false)
	}
	b.serveWith(func(c *impliedrole.Config) { c.Policy.MaxGenerated = 10 })
	c := b.condition("r0001", "Accepted", "Accepted")
	b.condition(fmt.Sprintf("r%04d", roles-1), "Accepted", "Accepted")
	b.condition("r0001", "Synced", "Synced")
	for _, r := range b.allRules() {
		if r.Name != "r0001" {
			continue
		}
		listed := len(r.Status.Inferences.ChildRoles)
		if listed == 0 || listed >= roles-1 || !strings.HasPrefix(c.Message, "more child roles follow") {
			t.Errorf("%d of %d are listed, and it says %q", listed, roles-1, c.Message)
		}
	}
	b.Quiet("a resync", func() { b.Resync(topology.ImpliedRole) })
}
