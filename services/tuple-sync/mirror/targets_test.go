package mirror

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
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

// doc makes a document, of a project if that has a name.
func (b *bed) doc(name, project string) {
	b.t.Helper()
	kind := kinds.Target(event.GroupResource{Group: "a.example", Resource: "docs"}, "v1", "Doc")
	o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: "a.example/v1", Kind: "Doc"}}
	if project != "" {
		o.OwnerReferences = []metav1.OwnerReference{{
			APIVersion: "resourcemanager.miloapis.com/v1alpha1", Kind: "Project", Name: project, UID: types.UID(b.api[b.keyOf(kinds.Projects(), project)].UID),
		}}
	}
	b.put(kind, name, o)
}
