package webhook

import (
	"fmt"
	"log/slog"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// woods is a state in which a user may get the tree oak with the UID "new". The plural of its kind is "trees".
type woods struct {
	t       *testing.T
	s       *indexState
	version int
}

func newWoods(t *testing.T, trust bool) *woods {
	s := newIndexState(informer.Config{Cluster: "local", Log: slog.New(slog.DiscardHandler)}, trust)
	s.startNewIndex()
	p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "trees"}}
	p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "a", "Tree", "trees", []string{"get"}
	s.made.SetProtectedResource("trees", p)
	s.made.SetRole("n", "viewer", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/trees.get"}}})
	b := &iamv1alpha1.PolicyBinding{}
	b.Spec.RoleRef.Name, b.Spec.Subjects = "viewer", []iamv1alpha1.Subject{{Kind: "Group", Name: "oidc:sales"}}
	b.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Name: "oak", UID: "new"}
	s.made.SetBinding("n", "b", b)
	gone := b.DeepCopy()
	gone.Spec.Subjects, gone.Spec.ResourceSelector.ResourceRef.Name = []iamv1alpha1.Subject{{Kind: "Group", Namespace: "n", Name: "staff", UID: "g"}}, "elm"
	s.made.SetGroup("n", "staff", &iamv1alpha1.Group{ObjectMeta: metav1.ObjectMeta{UID: "g"}})
	s.made.SetBinding("n", "gone", gone)
	return &woods{t: t, s: s}
}

func (w *woods) tell(plural, uid string, deleted bool) {
	w.t.Helper()
	if err := w.change(plural, uid, fmt.Sprintf(`{"apiVersion":"a/v1","kind":"Tree","metadata":{"name":"oak","uid":%q}}`, uid), deleted); err != nil {
		w.t.Fatal(err)
	}
}

func (w *woods) change(plural, uid, body string, deleted bool) error {
	w.version++
	k := event.Key{Cluster: "local", GroupResource: event.GroupResource{Group: "a", Resource: plural, Target: true}, Name: "oak"}
	return w.s.view.Apply(w.t.Context(), event.Change{
		Key: k, UID: uid, ResourceVersion: strconv.Itoa(w.version), Epoch: "e", Object: []byte(body), Deleted: deleted,
	})
}

func (w *woods) observe(plural string, is informer.TargetKindStatus) {
	w.s.applyObservation(event.GroupResource{Group: "a", Resource: plural, Target: true}, is)
}

func (w *woods) index() *authz.Index {
	w.t.Helper()
	x, err := w.s.currentIndex()
	if err != nil {
		w.t.Fatal(err)
	}
	return x
}

func (w *woods) may(when string, want bool) {
	w.t.Helper()
	q := authz.Query{Subject: authz.Subject{Groups: []string{"oidc:sales"}}, Permission: "a/trees.get", Type: "a/Tree", Name: "oak"}
	if _, allowed := w.index().Decide(q); allowed != want {
		w.t.Errorf("%s got allowed %v", when, allowed)
	}
}

func TestChangesDuringLoadAreInIndex(t *testing.T) {
	w := newWoods(t, false)
	w.tell("trees", "new", false)
	w.observe("trees", informer.TargetKindStatus{Kind: "Tree", Observed: true})
	if _, err := w.s.currentIndex(); err == nil {
		t.Error("got an index before the snapshot is complete")
	}
	w.s.fillAndPublishIndex()
	w.may("once all is read,", true)
}

// TestUndecodableObjectDoesNotAllow verifies that an object that cannot be decoded allows no access by its earlier
// state.
func TestUndecodableObjectDoesNotAllow(t *testing.T) {
	w := newWoods(t, false)
	w.s.fillAndPublishIndex()
	w.observe("trees", informer.TargetKindStatus{Kind: "Tree", Observed: true})
	w.tell("trees", "new", false)
	w.may("while it can be read,", true)
	if err := w.change("trees", "new", `{"metadata":"none"}`, false); err == nil {
		t.Error("it can")
	}
	w.may("when it cannot,", false)
}

// TestTrustEndsWithObservation verifies that trusted names count only while their kind is not observed.
func TestTrustEndsWithObservation(t *testing.T) {
	w := newWoods(t, true)
	w.s.fillAndPublishIndex()
	w.may("while nobody knows what there is,", true)
	w.observe("trees", informer.TargetKindStatus{Kind: "Tree", Observed: true})
	w.may("once it is known that it is not there,", false)
	w.observe("trees", informer.TargetKindStatus{})
	w.may("kind no longer followed,", true)
}

// TestIAMObjectsIgnoreObservations verifies that observations of IAM kinds as targets change nothing.
func TestIAMObjectsIgnoreObservations(t *testing.T) {
	w := newWoods(t, false)
	w.s.fillAndPublishIndex()
	x, typ := w.index(), typeOfKind(kinds.Organizations())
	x.SetProtectedResource("organizations", &iamv1alpha1.ProtectedResource{Spec: iamv1alpha1.ProtectedResourceSpec{
		ServiceRef: iamv1alpha1.ServiceReference{Name: kinds.Organizations().Group}, Kind: "Organization", Plural: "organizations", Permissions: []string{"get"},
	}})
	permission := iam.PermissionName(kinds.Organizations().Group, "organizations", "", "get")
	x.SetRole("n", "viewer", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{permission}}})
	b := &iamv1alpha1.PolicyBinding{}
	b.Spec.RoleRef.Name, b.Spec.Subjects = "viewer", []iamv1alpha1.Subject{{Kind: "Group", Name: "oidc:sales"}}
	b.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: kinds.Organizations().Group, Kind: "Organization", Name: "oak", UID: "o"}
	x.SetBinding("n", "on-oak", b)
	x.SetTarget(typ, "", "oak", &iam.BindingTarget{UID: "o"})
	k := event.Key{Cluster: "local", GroupResource: kinds.Organizations().GroupResource, Name: "oak"}
	k.Target = true
	if err := w.s.view.Apply(t.Context(), event.Change{Key: k, UID: "o", ResourceVersion: "1", Epoch: "e", Object: []byte(`{"metadata":{"name":"oak"}}`)}); err != nil {
		t.Fatal(err)
	}
	w.s.applyObservation(k.GroupResource, informer.TargetKindStatus{Kind: "Organization", Problem: "it is silent"})
	q := authz.Query{Subject: authz.Subject{Groups: []string{"oidc:sales"}}, Permission: permission, Type: typ, Name: "oak"}
	if _, allowed := x.Decide(q); !allowed {
		t.Error("an IAM object does not count when its kind is not observed")
	}
}

// TestKindIsObservedUnderOneOfTwoPlurals lets a kind get a new plural. The new one may be observed before the
// old one is gone.
func TestKindIsObservedUnderOneOfTwoPlurals(t *testing.T) {
	w := newWoods(t, false)
	w.s.fillAndPublishIndex()
	joins := func(when string, want bool) {
		t.Helper()
		if m, lacks := w.index().MissingToJoin(authz.Subject{}, authz.Ref{Namespace: "n", Name: "staff"}); lacks == want {
			t.Errorf("%s joining: got missing %+v", when, m)
		}
	}
	w.tell("bushes", "old", false)
	w.observe("bushes", informer.TargetKindStatus{Kind: "Tree", Observed: true})
	w.may("other object of the same name,", false)
	w.tell("trees", "new", false)
	w.tell("bushes", "old", true)
	w.observe("trees", informer.TargetKindStatus{Kind: "Tree", Observed: true})
	w.may("once it is there,", true)
	w.observe("bushes", informer.TargetKindStatus{Kind: "Tree", Problem: "it is not served"})
	w.may("only the new plural observed,", true)
	w.tell("bushes", "older", false)
	w.may("when something is told by the old one,", true)
	joins("while it is known which there are,", true)
	w.observe("trees", informer.TargetKindStatus{Kind: "Tree", Problem: "it is silent"})
	w.may("when it is known by none,", false)
	joins("while that is not known,", false)
	w.observe("trees", informer.TargetKindStatus{Kind: "Tree", Observed: true})
	w.observe("bushes", informer.TargetKindStatus{})
	w.may("when the old plural is gone,", true)
	joins("when the old plural is gone,", true)
	w.tell("trees", "new", true)
	w.may("when it is gone,", false)
	w.tell("bushes", "new", false)
	w.observe("bushes", informer.TargetKindStatus{Kind: "Tree", Observed: true})
	w.may("when it is there by the old plural,", true)
	w.observe("bushes", informer.TargetKindStatus{Kind: "Bush", Observed: true})
	w.may("when that is another kind's,", false)
}
