package derived

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

// A registered kind may have very many objects without any binding. They block no pass.
func TestUnreferencedTargetIsSkipped(t *testing.T) {
	b := newReconcilerEnv(t)
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
	b.drop(docKind(), "one")
	asked("it is gone", true) // By what it was when it was looked at last.
	b.doc("one", "")
	b.drop(docKind(), "one")
	asked("another of its name came and went", false)
	b.bindDoc("two")
	b.work()
	b.doc("two", "")
	asked("something is bound on one of its name", true)
	if marked := b.State.taken.keys; len(marked) > 0 {
		t.Errorf("marked are %v", marked)
	}
}

// Whether the objects of a kind are known has that looked at which depends on it, and nothing else: many kinds may come and go.
func TestObservationEnqueuesDependentsOnly(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.owned()
	mine := b.keyOf(docKind(), "mine")
	b.doc("other", "web")
	b.bindDoc("mine")
	b.work()
	docs, told := mine.GroupResource, informer.TargetKindStatus{}
	b.State.observed.names[docs] = docType
	b.State.observed.of = func(event.GroupResource) informer.TargetKindStatus { return told }
	whole := b.openFGA.holds()
	tell := func(of event.GroupResource, is informer.TargetKindStatus, held []string, may ...string) {
		t.Helper()
		told = is
		b.State.observed.updateObservation(of)
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
	depends := []string{"default/mine", "default/other", "on-mine", "protectedresources.iam.miloapis.com/docs", grantOf(whole, docType+":default/mine")}
	rest := slices.DeleteFunc(slices.Clone(whole), func(tuple string) bool {
		return strings.HasPrefix(tuple, docType+":") || strings.HasSuffix(tuple, "oidc%3Asales#member") || strings.Contains(tuple, grantOf(whole, docType+":default/mine"))
	})
	trees := event.GroupResource{Group: "a.example", Resource: "trees", Target: true}
	tell(trees, informer.TargetKindStatus{Kind: "Tree", Observed: true}, whole)
	tell(trees, informer.TargetKindStatus{Kind: "Tree", Problem: "it is silent"}, whole)
	tell(docs, informer.TargetKindStatus{Kind: "Doc", Problem: "it is silent"}, rest, depends...)
	tell(docs, informer.TargetKindStatus{Kind: "Doc", Problem: "it is silent"}, rest)
	tell(docs, informer.TargetKindStatus{Kind: "Doc", Observed: true}, whole, depends...)
	tell(docs, informer.TargetKindStatus{Kind: "Other", Observed: true}, rest, depends...)
	tell(docs, informer.TargetKindStatus{Kind: "Doc", Observed: true}, whole, depends...)
	b.drop(docKind(), "other")
	clear(b.dirty) // Of what an informer does not hold any more because nobody registers it, it does not tell.
	tell(docs, informer.TargetKindStatus{}, rest, depends...)
}

// Whoever gives a kind another plural may tell of the new one before the old one is gone.
func TestKindIsObservedUnderOneOfTwoPlurals(t *testing.T) {
	b := newReconcilerEnv(t)
	b.peopled()
	b.owned()
	b.bindDoc("mine")
	b.work()
	papers := kinds.TargetKind(event.GroupResource{Group: "a.example", Resource: "papers"}, "v1", "Doc")
	old := b.keyOf(papers, "old")
	b.api[old] = event.Change{Key: old, Version: "v1", UID: "nobody's"} // Whom the next binding means.
	b.bindDoc("old")
	b.put(papers, "old", target("Doc"))
	docs, told := b.keyOf(docKind(), "mine").GroupResource, map[event.GroupResource]informer.TargetKindStatus{}
	b.State.observed.of = func(of event.GroupResource) informer.TargetKindStatus { return told[of] }
	for _, c := range []struct {
		of        event.GroupResource
		is        informer.TargetKindStatus
		mine, old bool
	}{
		{old.GroupResource, informer.TargetKindStatus{Kind: "Doc", Observed: true}, true, true},
		{docs, informer.TargetKindStatus{Kind: "Doc", Observed: true}, true, true},
		{old.GroupResource, informer.TargetKindStatus{Kind: "Doc", Problem: "it is not served"}, true, false},
		{docs, informer.TargetKindStatus{Kind: "Doc", Problem: "it is silent"}, false, false},
		{docs, informer.TargetKindStatus{Kind: "Doc", Observed: true}, true, false},
		{old.GroupResource, informer.TargetKindStatus{}, true, false},
	} {
		if told[c.of] = c.is; !c.is.Observed && c.is.Problem == "" {
			b.drop(papers, "old") // As an informer does, which holds nothing of it then.
		}
		b.State.observed.updateObservation(c.of)
		b.follow()
		for name, want := range map[string]bool{"mine": c.mine, "old": c.old} {
			if got := grantOf(b.openFGA.holds(), docType+":"+ns+"/"+name) != "none"; got != want {
				t.Errorf("%s is %+v: somebody has something on %s: %v", c.of, c.is, name, got)
			}
		}
	}
}

// What a binding says of its target follows from what is told of the kind.
func TestBindingStatusReportsUnobservedTarget(t *testing.T) {
	b := newReconcilerEnv(t)
	b.owned()
	b.bindDoc("none")
	docs, told := b.keyOf(docKind(), "none").GroupResource, informer.TargetKindStatus{}
	b.State.observed.names[docs] = docType
	b.State.observed.of = func(event.GroupResource) informer.TargetKindStatus { return told }
	binding := &iamv1alpha1.PolicyBinding{}
	binding.Spec.RoleRef.Name, binding.Spec.Subjects = "viewer", []iamv1alpha1.Subject{{Kind: "Group", Name: "oidc:sales"}}
	binding.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: "a.example", Kind: "Doc", Name: "none", UID: "1"}
	b.put(kinds.PolicyBindings(), "nowhere", binding)
	project := binding.DeepCopy()
	project.Spec.ResourceSelector.ResourceRef.APIGroup, project.Spec.ResourceSelector.ResourceRef.Kind = "resourcemanager.miloapis.com", "Project"
	b.put(kinds.PolicyBindings(), "on-a-project", project)
	for _, is := range []struct {
		told               informer.TargetKindStatus
		there, where, name string
	}{
		{informer.TargetKindStatus{Kind: "Doc", Namespaced: true, Problem: "it is silent"}, iamv1alpha1.TargetKindNotRecognized, iamv1alpha1.TargetKindNotRecognized, "silent"},
		{informer.TargetKindStatus{Kind: "Doc", Namespaced: true, Observed: true}, iamv1alpha1.TargetNotFound, iamv1alpha1.TargetNamespaceMissing, "known"},
		{informer.TargetKindStatus{Kind: "Doc", Observed: true}, iamv1alpha1.TargetNotFound, iamv1alpha1.TargetNotFound, "in no namespace"},
		{informer.TargetKindStatus{}, iamv1alpha1.TargetKindNotRecognized, iamv1alpha1.TargetKindNotRecognized, "not served"},
	} {
		told = is.told
		b.State.observed.updateObservation(docs)
		b.follow()
		for name, want := range map[string]string{"on-none": is.there, "nowhere": is.where, "on-a-project": iamv1alpha1.TargetNotFound} {
			if got := b.targetOf(name); got != want {
				t.Errorf("while the kind is %s, %s says %s, want %s", is.name, name, got, want)
			}
		}
	}
}

// targetOf returns the reason of a binding's condition TargetValid.
func (b *reconcilerEnv) targetOf(binding string) string {
	b.t.Helper()
	var p iamv1alpha1.PolicyBinding
	if err := b.api[b.keyOf(kinds.PolicyBindings(), binding)].Decode(&p); err != nil {
		b.t.Fatal(err)
	}
	c := meta.FindStatusCondition(p.Status.Conditions, iamv1alpha1.TargetValid)
	if c == nil {
		return ""
	}
	return c.Reason
}

// What was granted on an object is not had on the next of its name, nor on one that is being deleted, though nobody meant the
// object before somebody was granted something on it.
func TestGrantsOnTargetGoWithTarget(t *testing.T) {
	for name, c := range map[string]struct {
		goes func(b *reconcilerEnv)
		has  bool
	}{
		"it stays":                 {func(b *reconcilerEnv) { b.doc("one", "") }, true},
		"it is gone":               {func(b *reconcilerEnv) { b.drop(docKind(), "one") }, false},
		"another has come":         {func(b *reconcilerEnv) { b.drop(docKind(), "one"); b.work(); b.doc("one", "") }, false},
		"another has come at once": {func(b *reconcilerEnv) { b.drop(docKind(), "one"); b.doc("one", "") }, false},
		"another is there, and nobody saw it go": {func(b *reconcilerEnv) {
			delete(b.api, b.keyOf(docKind(), "one"))
			b.doc("one", "")
			if k := (Key{sort: spread, owner: b.keyOf(docKind(), "one")}); b.dirty[k] != takes {
				b.t.Error("what takes something away is as urgent as what gives")
			}
		}, false},
		"it is being deleted": {func(b *reconcilerEnv) { b.put(docKind(), "one", deletingObject(target("Doc"))) }, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReconcilerEnv(t)
			b.owned()
			b.doc("one", "")
			b.work()
			b.bindDoc("one")
			b.work()
			grants := func() bool {
				return slices.ContainsFunc(b.openFGA.holds(), func(tuple string) bool {
					return strings.HasPrefix(tuple, docType+":"+ns+"/one#b@") || strings.HasSuffix(tuple, "#u@"+iam.TokenGroupObject("oidc:sales"))
				})
			}
			if !grants() {
				t.Fatalf("the store holds %v", b.openFGA.holds())
			}
			c.goes(b)
			if b.work(); grants() != c.has {
				t.Errorf("the store holds %v", b.openFGA.holds())
			}
		})
	}
}

// What belongs to a target does not belong to the next of its name, nor to one that is being deleted, and comes back with its
// kind. Nothing else leads to the target.
func TestParentLinkLastsWhileBothObjectsExist(t *testing.T) {
	const folderType = "a.example/Folder"
	folders := kinds.TargetKind(event.GroupResource{Group: "a.example", Resource: "folders"}, "v1", "Folder")
	for name, c := range map[string]struct {
		goes func(b *reconcilerEnv, in metav1.OwnerReference)
		has  bool
	}{
		"it stays":   {func(b *reconcilerEnv, _ metav1.OwnerReference) { b.put(folders, "all", target("Folder")) }, true},
		"it is gone": {func(b *reconcilerEnv, _ metav1.OwnerReference) { b.drop(folders, "all") }, false},
		"it is being deleted": {func(b *reconcilerEnv, _ metav1.OwnerReference) {
			b.put(folders, "all", deletingObject(target("Folder")))
		}, false},
		"what is in it is, too": {func(b *reconcilerEnv, in metav1.OwnerReference) {
			b.put(docKind(), "one", deletingObject(target("Doc", in)))
		}, false},
		"what is in it is gone":  {func(b *reconcilerEnv, _ metav1.OwnerReference) { b.drop(docKind(), "one") }, false},
		"what is in it is moved": {func(b *reconcilerEnv, _ metav1.OwnerReference) { b.doc("one", "web") }, false},
		"another has come": {func(b *reconcilerEnv, _ metav1.OwnerReference) {
			b.drop(folders, "all")
			b.put(folders, "all", target("Folder"))
		}, false},
		"another is there, and nobody saw it go": {func(b *reconcilerEnv, _ metav1.OwnerReference) {
			delete(b.api, b.keyOf(folders, "all"))
			b.put(folders, "all", target("Folder"))
		}, false},
		"its kind is not registered": {func(b *reconcilerEnv, _ metav1.OwnerReference) { b.drop(kinds.ProtectedResources(), "folders") }, false},
		"its kind is registered again": {func(b *reconcilerEnv, _ metav1.OwnerReference) {
			b.drop(kinds.ProtectedResources(), "folders")
			b.follow()
			b.put(kinds.ProtectedResources(), "folders", protect(folderType, "folders"))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReconcilerEnv(t)
			protected := registered()
			protected["folders"], protected["docs"] = protect(folderType, "folders"), protect(docType, "docs", projectType, folderType)
			b.register(protected)
			b.owned()
			b.State.observed.types[folderType] = kindScope{followed: true}
			k := b.put(folders, "all", target("Folder"))
			in := metav1.OwnerReference{APIVersion: "a.example/v1", Kind: "Folder", Name: "all", UID: types.UID(b.api[k].UID)}
			b.put(docKind(), "one", target("Doc", in))
			belongs := func() bool {
				return slices.Contains(b.openFGA.holds(), docType+":"+ns+"/one#p@"+folderType+":"+ns+"/all")
			}
			if b.follow(); !belongs() {
				t.Fatalf("the store holds %v", b.openFGA.holds())
			}
			c.goes(b, in)
			if b.follow(); belongs() != c.has {
				t.Errorf("the store holds %v", b.openFGA.holds())
			}
		})
	}
}

// grantOf returns the grant on an object.
func grantOf(tuples []string, object string) string {
	for _, tuple := range tuples {
		if grant, ok := strings.CutPrefix(tuple, object+"#b@"); ok {
			return grant
		}
	}
	return "none"
}

// owned creates an organization with two projects, and a document in one.
func (b *reconcilerEnv) owned() {
	b.t.Helper()
	b.State.observed.types[docType] = kindScope{followed: true}
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

// registered returns ProtectedResources for documents in projects and projects in organizations.
func registered() map[string]*iamv1alpha1.ProtectedResource {
	return map[string]*iamv1alpha1.ProtectedResource{
		"docs": protect(docType, "docs", projectType), "projects": protect(projectType, "projects", orgType), "orgs": protect(orgType, "organizations"),
	}
}

// register registers kinds, and no others, in a model that has a type for each.
func (b *reconcilerEnv) register(protected map[string]*iamv1alpha1.ProtectedResource) {
	b.t.Helper()
	m := &openfgav1.AuthorizationModel{
		Id: "M", SchemaVersion: "1.1", TypeDefinitions: iam.NewRegistry(slices.Collect(maps.Values(protected))).TypeDefinitions(),
	}
	for _, d := range m.GetTypeDefinitions() {
		d.Metadata.Module = ""
	}
	var err error
	if b.model, err = plan.NewModel(m); err != nil {
		b.t.Fatal(err)
	}
	for name, p := range protected {
		b.put(kinds.ProtectedResources(), name, p)
	}
}

func docKind() kinds.Kind {
	return kinds.TargetKind(event.GroupResource{Group: "a.example", Resource: "docs"}, "v1", "Doc")
}

// doc makes a document, of a project if that has a name.
func (b *reconcilerEnv) doc(name, project string) {
	b.t.Helper()
	if project == "" {
		b.put(docKind(), name, target("Doc"))
		return
	}
	b.put(docKind(), name, target("Doc", metav1.OwnerReference{
		APIVersion: "resourcemanager.miloapis.com/v1alpha1", Kind: "Project", Name: project, UID: types.UID(b.api[b.keyOf(kinds.Projects(), project)].UID),
	}))
}

func target(kind string, owners ...metav1.OwnerReference) *metav1.PartialObjectMetadata {
	return &metav1.PartialObjectMetadata{
		TypeMeta: metav1.TypeMeta{APIVersion: "a.example/v1", Kind: kind}, ObjectMeta: metav1.ObjectMeta{OwnerReferences: owners},
	}
}

func deletingObject(o *metav1.PartialObjectMetadata) *metav1.PartialObjectMetadata {
	o.DeletionTimestamp = new(metav1.Now())
	return o
}

// bindDoc gives whoever is of the sales a role on a document, if that is the one which has the name now.
func (b *reconcilerEnv) bindDoc(name string) {
	b.t.Helper()
	b.put(kinds.IAMRoles(), "viewer", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{getDoc}}})
	p := &iamv1alpha1.PolicyBinding{}
	p.Spec.RoleRef.Name, p.Spec.Subjects = "viewer", []iamv1alpha1.Subject{{Kind: "Group", Name: "oidc:sales"}}
	p.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{
		APIGroup: "a.example", Kind: "Doc", Namespace: ns, Name: name, UID: cmp.Or(b.api[b.keyOf(docKind(), name)].UID, "nobody's"),
	}
	b.put(kinds.PolicyBindings(), "on-"+name, p)
}
