//go:build integration

package tuplesync_test

import (
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Whatever a membership is without when it is made, it is for the user who was there then.
func TestMembershipIsBoundToFirstUser(t *testing.T) {
	b := newEnvWithRoles(t)
	b.apply(kinds.GroupMemberships(), "second", iamv1alpha1.GroupMembershipSpec{
		UserRef: iamv1alpha1.UserReference{Name: "alice"}, GroupRef: iamv1alpha1.GroupReference{Name: "staff", Namespace: ns},
	})
	b.user("idle")
	b.inactive("idle")
	b.join("idle-staff", "idle", b.staff)
	b.user("early")
	b.join("early-later", "early", metav1.ObjectMeta{Name: "later", Namespace: ns})
	for _, name := range []string{"second", "idle-staff", "early-later"} {
		testenv.AwaitObject(b.Env, kinds.GroupMemberships().InNamespace(ns), name, func(m *iamv1alpha1.GroupMembership) error {
			if m.Status.User == nil {
				return fmt.Errorf("%s is for nobody yet", name)
			}
			return nil
		})
	}
	for _, name := range []string{"alice", "idle", "early"} {
		b.remove(kinds.IAMUsers(), name)
		b.awaitNone(kinds.IAMUsers(), name)
		b.user(name)
	}
	later := b.apply(kinds.IAMGroups(), "later", nil)
	b.bind("later", "editor", on(projectType, b.web), group(later))
	b.ready(kinds.PolicyBindings(), "later", bound)
	for _, name := range []string{"alice-staff", "second", "idle-staff", "early-later"} {
		b.ready(kinds.GroupMemberships(), name, iamv1alpha1.ReferenceInvalid)
	}
	b.AwaitCaughtUp(topology.TupleSync)
	for _, name := range []string{"alice", "idle", "early"} {
		if b.may(name, editProject) {
			t.Errorf("another %s is a member", name)
		}
	}
}

// With the last kind goes whatever OpenFGA would answer by, and then the Store.
func TestDeletingIAMStoreIsEmptiedFirst(t *testing.T) {
	b := newEnvWithRoles(t)
	finalizers := func(want ...string) {
		t.Helper()
		testenv.Eventually(t, soon, func() error {
			o, err := b.get(kinds.Stores(), "iam")
			if err == nil && !slices.Equal(o.Finalizers, want) {
				err = fmt.Errorf("the finalizers are %v, want %v", o.Finalizers, want)
			}
			return err
		})
	}
	finalizers(corev1alpha1.TuplesFinalizer)
	b.SetFinalizers(kinds.Stores(), "", "iam", corev1alpha1.TuplesFinalizer, corev1alpha1.StoreFinalizer) // As store-sync does.
	b.Delete(kinds.Stores(), "iam")
	b.remove(kinds.ProtectedResources(), "organization")
	b.remove(kinds.ProtectedResources(), "project")
	finalizers(corev1alpha1.StoreFinalizer)
	if left := b.holds(b.id); len(left) > 0 {
		t.Errorf("the Store may go, and there is left %v", left)
	}
	b.RemoveFinalizers(kinds.Stores(), "iam")
}

func TestMembershipIsNotReadyDuringOutage(t *testing.T) {
	b := newEnvWithRoles(t)
	for _, name := range []string{"bob", "staff"} {
		b.ready(kinds.PolicyBindings(), name, bound)
	}
	b.ready(kinds.GroupMemberships(), "alice-staff", belonging)
	carol := b.user("carol")
	b.AwaitNoCalls()
	b.OpenFGA.Stop()
	b.bind("carol", "editor", on(projectType), user(carol))
	b.join("carol-staff", "carol", b.staff)
	b.role("viewer", nil, getProject, editProject)
	b.ready(kinds.PolicyBindings(), "carol", corev1alpha1.BackendUnavailable)
	b.ready(kinds.GroupMemberships(), "carol-staff", corev1alpha1.BackendUnavailable)
	b.ready(kinds.IAMRoles(), "viewer", corev1alpha1.BackendUnavailable)
	b.ready(kinds.PolicyBindings(), "bob", bound) // It is in step.
	b.OpenFGA.Start(t)
	b.ready(kinds.PolicyBindings(), "carol", bound)
	b.ready(kinds.GroupMemberships(), "carol-staff", belonging)
	b.ready(kinds.IAMRoles(), "viewer", bound)
	b.mayBoth(true, "carol")
}
