package webhook

import (
	"fmt"
	"log/slog"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/view"
)

// Whoever gives a kind another plural may tell of the new one before the old one is gone.
func TestAKindIsKnownByOnePluralWhenItIsNotByAnother(t *testing.T) {
	s := newState(view.New(view.Config{Cluster: "local", Blank: true, Log: slog.New(slog.DiscardHandler)}), "local", false)
	s.begun()
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
	s.loaded()
	version := 0
	tell := func(plural, uid string, deleted bool) {
		t.Helper()
		version++
		k := event.Key{Cluster: "local", GroupResource: event.GroupResource{Group: "a", Resource: plural, Target: true}, Name: "oak"}
		body := fmt.Appendf(nil, `{"apiVersion":"a/v1","kind":"Tree","metadata":{"name":"oak","uid":%q}}`, uid)
		c := event.Change{Key: k, UID: uid, ResourceVersion: strconv.Itoa(version), Epoch: "e", Object: body, Deleted: deleted}
		if err := s.view.Apply(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	x, err := s.index()
	if err != nil {
		t.Fatal(err)
	}
	may := func(when string, want bool) {
		t.Helper()
		q := decide.Question{Subject: decide.Subject{Groups: []string{"oidc:sales"}}, Permission: "a/trees.get", Type: "a/Tree", Name: "oak"}
		if _, allowed := x.Decide(q); allowed != want {
			t.Errorf("%s they may: %v", when, allowed)
		}
	}
	joins := func(when string, want bool) {
		t.Helper()
		if m, lacks := x.MissingToJoin(decide.Subject{}, decide.Ref{Namespace: "n", Name: "staff"}); lacks == want {
			t.Errorf("%s whoever joins lacks %+v", when, m)
		}
	}
	observe := func(plural string, is view.Observation) {
		s.observe(event.GroupResource{Group: "a", Resource: plural, Target: true}, is)
	}
	tell("bushes", "old", false)
	observe("bushes", view.Observation{Kind: "Tree", Observed: true})
	may("while there is another,", false)
	tell("trees", "new", false)
	tell("bushes", "old", true)
	observe("trees", view.Observation{Kind: "Tree", Observed: true})
	may("once it is there,", true)
	observe("bushes", view.Observation{Kind: "Tree", Problem: "it is not served"})
	may("when it is known by the new plural alone,", true)
	tell("bushes", "older", false)
	may("when something is told by the old one,", true)
	joins("while it is known which there are,", true)
	observe("trees", view.Observation{Kind: "Tree", Problem: "it is silent"})
	may("when it is known by none,", false)
	joins("while that is not known,", false)
	observe("trees", view.Observation{Kind: "Tree", Observed: true})
	observe("bushes", view.Observation{})
	may("when the old plural is gone,", true)
	joins("when the old plural is gone,", true)
	tell("trees", "new", true)
	may("when it is gone,", false)
	tell("bushes", "new", false)
	observe("bushes", view.Observation{Kind: "Tree", Observed: true})
	may("when it is there by the old plural,", true)
	observe("bushes", view.Observation{Kind: "Bush", Observed: true})
	may("when that is another kind's,", false)
}
