package mirror

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
)

// There may be very many objects of a registered kind, of which most are nobody's: none of them holds anybody up.
func TestATargetThatNobodyMeansIsNotLookedAt(t *testing.T) {
	b := newBed(t)
	b.owned()
	asked := func(what string, want bool) {
		t.Helper()
		if (len(b.dirty) > 0) != want {
			t.Errorf("%s: asked for are %v", what, b.dirty)
		}
		b.work()
	}
	b.doc("one", "")
	asked("it is nobody's", false)
	b.doc("one", "web")
	asked("it is of a project", true)
	b.doc("one", "")
	asked("it was", true)
	b.put(kinds.IAMRoles(), "viewer", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{getDoc}}})
	p := &iamv1alpha1.PolicyBinding{}
	p.Spec.RoleRef.Name, p.Spec.Subjects = "viewer", []iamv1alpha1.Subject{{Kind: "Group", Name: "oidc:sales"}}
	p.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: "a.example", Kind: "Doc", Namespace: ns, Name: "two", UID: "nobody's"}
	b.put(kinds.PolicyBindings(), "on-two", p)
	b.work()
	b.doc("two", "")
	asked("something is bound on one of its name", true)
	if marked := b.State.taken.keys; len(marked) > 0 {
		t.Errorf("marked are %v", marked)
	}
}

// Whether the objects of a kind are known has that looked at which depends on it, and nothing else: many kinds may come and go.
func TestOfAKindThatIsObservedOnlyWhatDependsOnItIsLookedAt(t *testing.T) {
	b := newBed(t)
	b.peopled()
	b.owned()
	p := &iamv1alpha1.PolicyBinding{}
	p.Spec.RoleRef.Name, p.Spec.Subjects = "viewer", []iamv1alpha1.Subject{{Kind: "Group", Name: "oidc:sales"}}
	mine := b.keyOf(docKind(), "mine")
	p.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: "a.example", Kind: "Doc", Namespace: ns, Name: "mine", UID: b.api[mine].UID}
	b.put(kinds.PolicyBindings(), "on-mine", p)
	b.work()
	docs, told := mine.GroupResource, view.Observation{}
	b.State.observed.names[docs] = docType
	b.State.observed.of = func(event.GroupResource) view.Observation { return told }
	whole := b.openFGA.holds()
	tell := func(of event.GroupResource, is view.Observation, held []string, may ...string) {
		t.Helper()
		told = is
		b.State.observed.take(of)
		b.follow()
		if got := b.openFGA.holds(); !slices.Equal(got, held) {
			t.Errorf("%s is %+v: the store holds\n%v\nwant\n%v", of, is, got, held)
		}
		for _, k := range b.done {
			if !slices.ContainsFunc(may, func(what string) bool { return strings.Contains(k.String(), what) }) && !strings.Contains(k.String(), "IAM store") {
				t.Errorf("%s is %+v: looked at is %s", of, is, k)
			}
		}
	}
	depends := []string{"default/mine", "on-mine", "protectedresources.iam.miloapis.com/docs", grantOf(whole, docType+":default/mine")}
	rest := slices.DeleteFunc(slices.Clone(whole), func(tuple string) bool {
		return strings.HasPrefix(tuple, docType+":") || strings.HasSuffix(tuple, "oidc%3Asales#member") || strings.Contains(tuple, grantOf(whole, docType+":default/mine"))
	})
	trees := event.GroupResource{Group: "a.example", Resource: "trees", Target: true}
	tell(trees, view.Observation{Kind: "Tree", Observed: true}, whole)
	tell(trees, view.Observation{Kind: "Tree", Problem: "it is silent"}, whole)
	tell(docs, view.Observation{Kind: "Doc", Problem: "it is silent"}, rest, depends...)
	tell(docs, view.Observation{Kind: "Doc", Problem: "it is silent"}, rest)
	tell(docs, view.Observation{Kind: "Doc", Observed: true}, whole, depends...)
	tell(docs, view.Observation{Kind: "Other", Observed: true}, rest, depends...)
	tell(docs, view.Observation{Kind: "Doc", Observed: true}, whole, depends...)
	tell(docs, view.Observation{}, rest, depends...)
}

// grantOf is the grant on an object.
func grantOf(tuples []string, object string) string {
	for _, tuple := range tuples {
		if grant, ok := strings.CutPrefix(tuple, object+"#b@"); ok {
			return grant
		}
	}
	return "none"
}

// owned has an organization with two projects, and a document in one.
func (b *bed) owned() {
	b.t.Helper()
	b.State.observed.types[docType] = true
	b.put(kinds.Organizations(), "acme", &resourcemanagerv1alpha1.Organization{})
	b.project("web", "acme")
	b.project("api", "acme")
	b.work()
	b.doc("mine", "web")
	b.work()
	if held := b.openFGA.holds(); !slices.Contains(held, docType+":"+ns+"/mine#p@"+projectType+":web") || b.parentOf("web") != "acme" {
		b.t.Fatalf("the store holds %v", held)
	}
}

func docKind() kinds.Kind {
	return kinds.Target(event.GroupResource{Group: "a.example", Resource: "docs"}, "v1", "Doc")
}

// doc makes a document, of a project if that has a name.
func (b *bed) doc(name, project string) {
	b.t.Helper()
	o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "a.example/v1", Kind: "Doc"}}
	if project != "" {
		o.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "resourcemanager.miloapis.com/v1alpha1", Kind: "Project", Name: project, UID: types.UID(b.api[b.keyOf(kinds.Projects(), project)].UID),
		}}
	}
	b.put(docKind(), name, o)
}
