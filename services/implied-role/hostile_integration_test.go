//go:build integration

package impliedrole_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
func (b *testEnv) generates(want string) {
	b.T.Helper()
	testenv.Eventually(b.T, soon, func() error {
		if got := b.generated(); got != want {
			return fmt.Errorf("generated %q, want %q", got, want)
		}
		return nil
	})
}

func (b *testEnv) patchRule(name, patch string) {
	b.T.Helper()
	b.Patch(kinds.ImpliedRoles().InNamespace(b.namespace), ruleName(name), patch)
}

func TestIndependentLabelDetachesGeneratedBinding(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	b.do("a>b b>c B=a{x}")
	b.becomes("B:b{x} B:c{x}")
	mine := name("B", "b")
	b.patch(mine, `{"metadata":{"labels":{"role.k8s.com/independent":"true"}}}`)
	b.condition("a>b", "Synced", "NameConflict")
	b.reported(mine, "NameConflict")
	b.generates("B:c{x} " + mine + ":c{x}")
	b.AwaitNoCalls()
	was := b.get(mine)
	b.do("-a>b")
	b.generates(mine + ":c{x}")
	b.AwaitNoCalls()
	if now := b.get(mine); now == nil || now.ResourceVersion != was.ResourceVersion {
		t.Errorf("the independent binding became %+v", now)
	}
	b.do("a>b")
	b.patch(mine, `{"metadata":{"labels":{"role.k8s.com/independent":null}}}`)
	b.becomes("B:b{x} B:c{x}")
}

func TestTerminatingNamespaceIsSkipped(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	b.serve()
	going := b.in("stuck")
	going.do("a>b B1=a{x} B2=a{y}")
	going.becomes("B1:b{x} B2:b{y}")
	going.patch("B1", held)
	going.patchRule("a>b", held)
	b.DeleteNamespace("stuck")
	going.generates("")
	b.AwaitNoCalls()
	b.CheckNoWrites("a resync while it is stuck", func() { b.RequestResync(topology.ImpliedRole) })
	b.do("a>b B=a{x}")
	b.becomes("B:b{x}")
	going.patch("B1", unheld)
	going.patchRule("a>b", unheld)
	b.AwaitNamespaceGone("stuck")
}

func refusal(r *http.Request) (*http.Response, error) {
	return answer(r, apierrors.NewForbidden(schema.GroupResource{Resource: "something"}, "x", errors.New("refused on purpose")))
}

func TestRefusedRevocationIsReportedAndRetried(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
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

func TestRefusedStatusDoesNotBlockOthers(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
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

// TestStatusOfManyChildrenFitsIntoAPIServerLimit makes a tree of roles with the longest names, whose characters JSON
// escapes.
func TestStatusOfManyChildrenFitsIntoAPIServerLimit(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
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
	b.CheckNoWrites("a resync", func() { b.RequestResync(topology.ImpliedRole) })
}
