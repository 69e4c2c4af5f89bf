package derived

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// doom starts the deletion of the Store.
func (b *reconcilerEnv) doom() {
	b.t.Helper()
	b.put(kinds.Stores(), "iam", &corev1alpha1.Store{
		ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())},
		Spec:       adoptingStore(),
		Status:     corev1alpha1.StoreStatus{StoreID: "store", AuthorizationModelID: "M"},
	})
}

func (b *reconcilerEnv) unprotect() {
	b.t.Helper()
	for _, name := range []string{"docs", "projects", "orgs"} {
		b.drop(kinds.ProtectedResources(), name)
	}
}

// OpenFGA still answers requests for the store of a deleted Store, by its last model.
func TestDeletingStoreIsEmptiedFirst(t *testing.T) {
	for name, steps := range map[string][]func(*reconcilerEnv){
		"the Store first": {(*reconcilerEnv).doom, (*reconcilerEnv).unprotect},
		"the kinds first": {(*reconcilerEnv).unprotect, (*reconcilerEnv).doom},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReconcilerEnv(t)
			b.peopled()
			if len(b.openFGA.holds()) == 0 {
				t.Fatal("nobody has anything")
			}
			for _, step := range steps {
				if b.follow(); b.IsIAMStoreEmptied() {
					t.Error("it may go too early")
				}
				step(b)
			}
			b.work()
			b.follow() // The tail looks again.
			if left := b.openFGA.holds(); len(left) > 0 || !b.IsIAMStoreEmptied() {
				t.Errorf("it may go: %v; there is left %v", b.IsIAMStoreEmptied(), left)
			}
		})
	}
}

func TestDeletingStoreWithoutOpenFGAStoreIsReleased(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.unprotect()
	b.doom()
	b.openFGA.gone = true
	if b.follow(); !b.IsIAMStoreEmptied() {
		t.Error("it waits for a store that is gone")
	}
}

func TestDeletingStoreWithoutModelIsReleased(t *testing.T) {
	b := newReconcilerEnv(t)
	b.put(kinds.Stores(), "iam", &corev1alpha1.Store{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: new(metav1.Now())}})
	if b.follow(); !b.IsIAMStoreEmptied() {
		t.Error("it waits")
	}
}

// A blocked deletion of an object, or a failing write to it, blocks no revocation.
func TestRemainingFinalizerDoesNotKeepAccess(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	before := b.openFGA.holds()
	b.stuck = errTrouble
	idle := func(state iamv1alpha1.ActivationState, finalizers ...string) {
		b.put(kinds.IAMUsers(), "bob", &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{Finalizers: finalizers}, Status: iamv1alpha1.UserStatus{State: state}})
	}
	idle(iamv1alpha1.Inactive, iamv1alpha1.SystemGroupFinalizer)
	b.try(40)
	b.inStep("with a finalizer that stays,")
	if after := b.openFGA.holds(); len(after) >= len(before) {
		t.Errorf("bob, who is Inactive, has what he had: %v", after)
	}
	b.stuck = nil
	b.work()
	if f := b.api[b.keyOf(kinds.IAMUsers(), "bob")].Object; strings.Contains(string(f), iamv1alpha1.SystemGroupFinalizer) {
		t.Errorf("the finalizer stays: %s", f)
	}
}

// A predecessor of this service set finalizers on six kinds; their names are known.
func TestLegacyFinalizersAreRemoved(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	const theirs = "others.example/finalizer"
	held := func(by string) metav1.ObjectMeta { return metav1.ObjectMeta{Finalizers: []string{theirs, by}} }
	for name, c := range map[string]struct {
		kind   kinds.Kind
		object metav1.Object
	}{
		"held-role":       {kinds.IAMRoles(), &iamv1alpha1.Role{ObjectMeta: held("iam.miloapis.com/openfga-role")}},
		"held-binding":    {kinds.PolicyBindings(), &iamv1alpha1.PolicyBinding{ObjectMeta: held("iam.miloapis.com/policybinding")}},
		"held-membership": {kinds.GroupMemberships(), &iamv1alpha1.GroupMembership{ObjectMeta: held("iam.miloapis.com/groupmembership")}},
		"held-user":       {kinds.IAMUsers(), &iamv1alpha1.User{ObjectMeta: held("iam.miloapis.com/system-group-membership")}},
		"held-account":    {kinds.IAMServiceAccounts(), &iamv1alpha1.ServiceAccount{ObjectMeta: held("iam.miloapis.com/system-group-membership")}},
		"held-project":    {kinds.Projects(), &resourcemanagerv1alpha1.Project{ObjectMeta: held("resourceownerhierarchy.iam.miloapis.com/finalizer")}},
	} {
		b.put(c.kind, name, c.object)
		b.work()
		var is metav1.PartialObjectMetadata
		if err := b.api[b.keyOf(c.kind, name)].Decode(&is); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(is.Finalizers, []string{theirs}) {
			t.Errorf("%s is held by %v", name, is.Finalizers)
		}
	}
}

// Whoever is going when a membership is made, though nobody has told yet, is not whom it is for.
func TestMembershipIgnoresDeletingUser(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	k := b.put(kinds.IAMUsers(), "carol", &iamv1alpha1.User{})
	b.work()
	b.written(b.api[k], &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{Name: "carol", UID: types.UID(b.api[k].UID), DeletionTimestamp: new(metav1.Now())}})
	b.join("carol-staff", "carol", "staff")
	b.work()
	membership := func() string { return string(b.api[b.keyOf(kinds.GroupMemberships(), "carol-staff")].Object) }
	if strings.Contains(membership(), b.api[k].UID) {
		t.Errorf("it is for who is going: %s", membership())
	}
	b.drop(kinds.IAMUsers(), "carol")
	b.put(kinds.IAMUsers(), "carol", &iamv1alpha1.User{})
	b.work()
	if !strings.Contains(membership(), b.api[k].UID) {
		t.Errorf("it is for nobody: %s", membership())
	}
	b.inStep("with another carol,")
}
