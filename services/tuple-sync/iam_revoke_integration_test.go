//go:build integration

package tuplesync_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// envWithRoles is a bed where alice may get and update the project web by way of staff, and bob by himself.
type envWithRoles struct {
	*iamTestEnv

	running                *testenv.RunningService
	alice, bob, web, staff metav1.ObjectMeta
}

func newEnvWithRoles(t *testing.T) *envWithRoles {
	t.Helper()
	b := &envWithRoles{iamTestEnv: newIAMTestEnv(t)}
	b.StartReflector()
	b.running = b.serve()
	b.fill()
	b.ready(kinds.Projects(), "web", belonging) // Nothing that was asked takes that.
	return b
}

// fill makes, or makes again, all that is declared.
func (b *envWithRoles) fill() {
	b.T.Helper()
	b.alice, b.bob = b.user("alice"), b.user("bob")
	b.org("acme")
	b.web = b.project("web", "acme")
	b.staff = b.apply(kinds.IAMGroups(), "staff", nil)
	b.role("viewer", nil, getProject)
	b.role("editor", []string{"viewer"}, editProject)
	b.join("alice-staff", "alice", b.staff)
	b.bind("staff", "editor", on(projectType, b.web), group(b.staff))
	b.bind("bob", "editor", on(projectType, b.web), user(b.bob))
	b.awaits(true, "alice", editProject)
	b.awaits(true, "alice", getProject)
	b.awaits(true, "bob", editProject)
	b.awaits(true, "bob", getProject)
}

func (b *envWithRoles) mayBoth(want bool, user string) {
	b.T.Helper()
	b.awaits(want, user, getProject)
	b.awaits(want, user, editProject)
}

func TestEveryRemovalRevokesAccess(t *testing.T) {
	b := newEnvWithRoles(t)
	for _, step := range []struct {
		what string
		take func()
		lost []string
		kept []string
	}{
		{"a membership", func() { b.remove(kinds.GroupMemberships(), "alice-staff") }, []string{"alice"}, []string{"bob"}},
		{"a member", func() { b.join("alice-staff", "bob", b.staff) }, []string{"alice"}, []string{"bob"}},
		{"a group", func() { b.remove(kinds.IAMGroups(), "staff") }, []string{"alice"}, []string{"bob"}},
		{"a subject", func() { b.bind("bob", "editor", on(projectType, b.web), user(b.alice)) }, []string{"bob"}, []string{"alice"}},
		{"a user", func() { b.remove(kinds.IAMUsers(), "bob") }, []string{"bob"}, []string{"alice"}},
		{"a role", func() { b.remove(kinds.IAMRoles(), "editor") }, []string{"alice", "bob"}, nil},
		{"a binding", func() { b.remove(kinds.PolicyBindings(), "bob") }, []string{"bob"}, []string{"alice"}},
		{"a target", func() { b.remove(kinds.Projects(), "web") }, []string{"alice", "bob"}, nil},
	} {
		step.take()
		for _, who := range step.lost {
			b.mayBoth(false, who)
		}
		for _, who := range step.kept {
			b.mayBoth(true, who)
		}
		for name, kind := range map[string]kinds.Kind{
			"bob": kinds.PolicyBindings(), "staff": kinds.PolicyBindings(), "alice-staff": kinds.GroupMemberships(),
		} {
			b.remove(kind, name)
		}
		b.fill()
	}
	b.role("viewer", nil) // A permission of an inherited role.
	b.awaits(false, "alice", getProject)
	b.awaits(false, "bob", getProject)
	b.awaits(true, "bob", editProject)
	b.inactive("bob")
	b.awaits(false, "bob", editProject)
}

func (b *iamTestEnv) inactive(name string) {
	b.T.Helper()
	b.ApplyStatus("identity", kinds.IAMUsers(), name, map[string]any{"state": iamv1alpha1.Inactive})
}

func TestNewObjectOfSameNameDoesNotInheritAccess(t *testing.T) {
	b := newEnvWithRoles(t)
	b.ready(kinds.GroupMemberships(), "alice-staff", belonging)
	b.remove(kinds.IAMUsers(), "alice")
	b.awaits(false, "alice", editProject)
	b.user("alice")
	b.ready(kinds.GroupMemberships(), "alice-staff", iamv1alpha1.ReferenceInvalid)
	b.remove(kinds.Projects(), "web")
	b.awaits(false, "bob", editProject)
	b.project("web", "acme")
	b.ready(kinds.PolicyBindings(), "bob", iamv1alpha1.ResourceSelectorValidationFailed)
	b.AwaitNoCalls()
	if b.may("alice", editProject) || b.may("bob", editProject) {
		t.Error("what was given to others of the same names is theirs")
	}
}

func TestForeignTuplesAreRemovedFromIAMTypesOnly(t *testing.T) {
	b := newEnvWithRoles(t)
	b.AwaitCaughtUp(topology.TupleSync)
	b.AwaitNoCalls()
	before := b.holds(b.id)
	door := iam.GrantType + ":" + string(b.web.UID) + "/door#u@" + iam.UserSubject("eve")
	foreign := "store:other#owner@user:eve"
	b.write(b.id, []string{door, foreign}, []string{before[0]})
	want := append(slices.Clone(before), foreign)
	b.awaitTuples(b.id, want...)
}
