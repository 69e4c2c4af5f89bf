package derived

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// parentOf returns the organization of a project in the store.
func (b *reconcilerEnv) parentOf(project string) string {
	object := projectType + ":" + project + "#p@"
	for _, held := range b.openFGA.holds() {
		if parent, ok := strings.CutPrefix(held, object+orgType+":"); ok {
			return parent
		}
	}
	return ""
}

// A new organization under an old name does not receive the projects of the previous one.
func TestProjectIsBoundToFirstOrganization(t *testing.T) {
	for _, backwards := range []bool{false, true} {
		b := newReconcilerEnv(t)
		b.backwards = backwards
		organization := func(name string) { b.put(kinds.Organizations(), name, &resourcemanagerv1alpha1.Organization{}) }
		want := func(when, parent string) {
			t.Helper()
			b.work()
			if got := b.parentOf("web"); got != parent {
				t.Errorf("%s (backwards %t) it belongs to %q, want %q", when, backwards, got, parent)
			}
		}
		b.project("web", "acme")
		want("before there is an organization", "")
		organization("acme")
		want("with one", "acme")
		b.drop(kinds.Organizations(), "acme")
		want("when that is gone", "")
		organization("acme")
		want("when there is another of the name", "")
		b.open()
		want("after a restart", "")
		b.project("web", "newer") // Whoever writes this needs bind on newer; what was recorded is not of this name.
		want("before the newer one is there", "")
		organization("newer")
		want("given to another", "newer")
		if written := len(b.openFGA.writes); !slices.ContainsFunc(b.done, func(k Key) bool { return k.sort == record }) || written == 0 {
			t.Error("nothing was recorded")
		}
	}
}

// The reconciler does not overwrite a Ready condition of other software.
func TestForeignReadyConditionIsKept(t *testing.T) {
	for reason, want := range map[string]string{"Unknown": "True/Reconciled", "SigningUp": "Unknown/SigningUp"} {
		b := newReconcilerEnv(t)
		b.put(kinds.IAMUsers(), "alice", &iamv1alpha1.User{Status: iamv1alpha1.UserStatus{
			Conditions: []metav1.Condition{{Type: iamv1alpha1.Ready, Status: metav1.ConditionUnknown, Reason: reason}},
		}})
		b.work()
		if got := b.tells(kinds.IAMUsers(), "alice"); got != want {
			t.Errorf("after %s it is %s, want %s", reason, got, want)
		}
	}
}
