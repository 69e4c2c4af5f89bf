package authz

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
)

// indexWithTree returns an index in which alice has the permission get on the a/Tree one/oak.
func indexWithTree() *Index { return setTree(New(nil)) }

func setTree(x *Index) *Index {
	p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "trees"}}
	p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "a", "Tree", "trees", []string{"get"}
	x.SetProtectedResource("trees", p)
	x.SetRole("one", "reader", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a/trees.get"}}})
	x.SetUser("alice", &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "1"}})
	x.SetTarget("a/Tree", "one", "oak", &iam.BindingTarget{Namespace: "one", UID: "2"})
	x.SetBinding("one", "b", binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "oak", UID: "2"}))
	return x
}

func binds(to *iamv1alpha1.ResourceReference) *iamv1alpha1.PolicyBinding {
	b := &iamv1alpha1.PolicyBinding{}
	b.Spec.RoleRef.Name = "reader"
	b.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "User", Name: "alice", UID: "1"}}
	b.Spec.ResourceSelector.ResourceRef = to
	return b
}

func get(user, namespace, name string) Query {
	return Query{Subject: Subject{User: user}, Permission: "a/trees.get", Type: "a/Tree", Namespace: namespace, Name: name}
}

func (x *Index) gets(user, namespace, name string) bool {
	_, ok := x.Decide(get(user, namespace, name))
	return ok
}

func TestQueryWithoutNameIsNotWholeKind(t *testing.T) {
	x := indexWithTree()
	x.SetBinding("one", "nameless", binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree"}))
	if !x.gets("alice", "one", "oak") || x.gets("alice", "one", "elm") || x.gets("alice", "", "") || x.gets("bob", "one", "oak") || x.gets("", "one", "oak") {
		t.Error("a binding without an object name has an effect, or the other binding has none")
	}
}

func TestWholeKindGrantNeedsExistingObject(t *testing.T) {
	x := indexWithTree()
	all := binds(nil)
	all.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: "a", Kind: "Tree"}
	x.SetBinding("one", "all", all)
	for name, there := range map[string]bool{"oak": true, "elm": false, "": false} {
		q := get("alice", "one", name)
		q.RequireExists = true
		_, ok := x.Decide(q)
		holders, _ := x.ListAllowedPrincipals(q, 10)
		e := x.Explain(q)
		if ok != there || (len(holders) == 1) != there || e.Allowed != there || e.NoObject != (name == "elm") || e.Unregistered {
			t.Errorf("%q: %v, %v, %+v", name, ok, holders, e)
		}
		if !x.gets("alice", "one", name) {
			t.Errorf("%q: refused without RequireExists, want allowed", name)
		}
	}
}

// TestExplainReportsNoObjectForRegisteredKindOnly verifies that an explanation reports NoObject only for a registered
// kind.
func TestExplainReportsNoObjectForRegisteredKindOnly(t *testing.T) {
	for typ, want := range map[string]bool{"": false, "b/Tree": false, "a/Tree": true} {
		q := get("alice", "one", "elm")
		q.Permission, q.Type = "", typ
		if e := indexWithTree().Explain(q); e.NoObject != want || !e.Unregistered {
			t.Errorf("type %q: Explain returned %+v", typ, e)
		}
	}
}

func TestDecideAllowsAbsentObjectOfTrustedType(t *testing.T) {
	x := setTree(New(func(typ string) bool { return typ == "a/Tree" }))
	x.SetBinding("one", "nameless", binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one"}))
	elm := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "elm", UID: "3"})
	if preview := x.PreviewBinding("one", elm, 1); preview.NoTarget || len(preview.Gains[0].Permissions) != 1 {
		t.Errorf("Preview returned %+v", preview)
	}
	x.SetBinding("one", "c", elm)
	if !x.gets("alice", "one", "elm") || x.gets("alice", "one", "ash") || x.gets("alice", "one", "") || x.gets("bob", "one", "elm") {
		t.Error("a binding on a trusted object has no effect, or affects another object")
	}
	x.SetTarget("a/Tree", "one", "elm", &iam.BindingTarget{Namespace: "one", UID: "4"})
	if x.gets("alice", "one", "elm") || !x.PreviewBinding("one", elm, 1).NoTarget {
		t.Error("a binding affects an object with another UID")
	}
}

func TestRefreshTypeTrustRevokesAbsentObjects(t *testing.T) {
	trusted := true
	x := setTree(New(func(string) bool { return trusted }))
	for _, name := range []string{"elm", "ash"} {
		x.SetBinding("one", name, binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: name, UID: "3"}))
	}
	x.SetTarget("a/Tree", "one", "ash", &iam.BindingTarget{Namespace: "one", UID: "3"})
	trusted = false
	x.RefreshTypeTrust("a/Bush")
	if !x.gets("alice", "one", "elm") {
		t.Error("trust changed without RefreshTrust of the type")
	}
	x.RefreshTypeTrust("a/Tree")
	if x.gets("alice", "one", "elm") || !x.gets("alice", "one", "ash") {
		t.Error("want access to the existing object only")
	}
	x.SetBinding("one", "fir", binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "fir", UID: "3"}))
	trusted = true
	x.RefreshTypeTrust("a/Tree")
	if !x.gets("alice", "one", "elm") || !x.gets("alice", "one", "ash") || !x.gets("alice", "one", "fir") {
		t.Error("objects are not trusted again after RefreshTrust")
	}
}

func TestDuplicateSubjectsAreRemovedTogether(t *testing.T) {
	x := indexWithTree()
	b := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "oak", UID: "2"})
	b.Spec.Subjects = append(b.Spec.Subjects, b.Spec.Subjects[0])
	x.SetBinding("one", "b", b)
	x.SetBinding("one", "c", b)
	x.SetBinding("one", "b", nil)
	if !x.gets("alice", "one", "oak") {
		t.Error("removal of one of two equal bindings removed the grant")
	}
	x.SetBinding("one", "c", nil)
	if x.gets("alice", "one", "oak") {
		t.Error("the grant of a repeated subject is left after removal")
	}
}

func TestPermissionSetHoldsMoreThan64(t *testing.T) {
	x := indexWithTree()
	p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: "trees"}}
	p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural = "a", "Tree", "trees"
	all := []string{"get"}
	for i := range 128 {
		all = append(all, fmt.Sprint("verb", i))
	}
	p.Spec.Permissions = all
	x.SetProtectedResource("trees", p)
	for _, verb := range all {
		q := get("alice", "one", "oak")
		q.Permission = "a/trees." + verb
		if _, ok := x.Decide(q); ok != (verb == "get") {
			t.Errorf("verb %s: got allowed %v", verb, ok)
		}
	}
}

func TestScopeSetHoldsManyScopes(t *testing.T) {
	x := indexWithTree()
	below := func(kind, plural string, parents ...string) {
		p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: plural}}
		p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "a", kind, plural, []string{"get"}
		for _, parent := range parents {
			p.Spec.ParentResources = append(p.Spec.ParentResources, iamv1alpha1.ParentResourceRef{APIGroup: "a", Kind: parent})
		}
		x.SetProtectedResource(plural, p)
	}
	below("Tree", "trees", "Wood")
	below("Wood", "woods", "Hill")
	below("Hill", "hills")
	oak := &iam.BindingTarget{UID: "2", Namespace: "one"}
	const many = 3 * few
	for i := range many { // Every wood is below every hill, so there are many*many paths.
		wood := &iam.BindingTarget{UID: "w"}
		for j := range many {
			wood.Owners = append(wood.Owners, iam.Owner{Type: "a/Hill", Name: fmt.Sprint("hill", j), UID: "h"})
		}
		x.SetTarget("a/Wood", "", fmt.Sprint("wood", i), wood)
		x.SetTarget("a/Hill", "", fmt.Sprint("hill", i), &iam.BindingTarget{UID: "h"})
		oak.Owners = append(oak.Owners, iam.Owner{Type: "a/Wood", Name: fmt.Sprint("wood", i), UID: "w"})
	}
	x.SetTarget("a/Tree", "one", "oak", oak)
	x.SetBinding("one", "b", binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Hill", Name: fmt.Sprint("hill", many-1), UID: "h"}))
	if !x.gets("alice", "one", "oak") {
		t.Error("a role on the last hill does not count")
	}
	if path := x.Explain(get("alice", "one", "oak")).Path; len(path) != 3 {
		t.Errorf("got Path %v, want 3 objects", path)
	}
}

// TestDecideSkipsGrantsOfOtherUIDs binds roles to many UIDs that never existed. Queries about the
// object with that name must not visit these grants.
func TestDecideSkipsGrantsOfOtherUIDs(t *testing.T) {
	x := indexWithTree()
	const many = 1000
	for i := range many {
		b := binds(&iamv1alpha1.ResourceReference{APIGroup: "a", Kind: "Tree", Namespace: "one", Name: "t", UID: fmt.Sprint("never", i)})
		x.SetBinding("one", fmt.Sprint("b", i), b)
	}
	p := x.places[Scope{Type: "a/Tree", Ref: Ref{"one", "t"}}]
	for _, uid := range []string{"never1", "2", "never2"} {
		x.SetTarget("a/Tree", "one", "t", &iam.BindingTarget{Namespace: "one", UID: uid})
		for _, g := range p.grants {
			if g.uid != uid {
				t.Errorf("object %s: a grant on UID %s counts", uid, g.uid)
			}
		}
		if want := strings.Count(uid, "never"); len(p.grants) != want || len(p.idle) != many-want {
			t.Errorf("object %s: got %d active and %d idle grants", uid, len(p.grants), len(p.idle))
		}
	}
	for i := range many {
		x.SetBinding("one", fmt.Sprint("b", i), nil)
	}
	x.SetTarget("a/Tree", "one", "t", nil)
	if x.places[p.Scope] != nil {
		t.Error("the place is left after removal of its object and grants")
	}
}

func TestToOpenFGACheckRefusesTwoPrincipalsAndHandlesLongNames(t *testing.T) {
	x, long := indexWithTree(), strings.Repeat("n", 250)
	x.SetTarget("a/Tree", long, long, &iam.BindingTarget{Namespace: long, UID: "3"})
	if _, ok := x.ToOpenFGACheck(Query{Subject: Subject{User: "alice", Account: "1"}, Permission: "a/trees.get", Type: "a/Tree"}); ok {
		t.Error("Check accepted a subject that is both a User and an account")
	}
	q := get("alice", long, long)
	if q.RequireExists = true; x.gets("alice", long, long) {
		t.Error("alice is allowed without a binding")
	}
	c, ok := x.ToOpenFGACheck(q)
	if want := iam.OpenFGAObject("a/Tree", long, long); !ok || c.Object != want || c.User != iam.UserSubject("alice") {
		t.Errorf("got check %+v, %v, want object %s", c, ok, want)
	}
}

func file() Scope { return Scope{Type: "a/File", Ref: Ref{"one", "it"}} }

// indexWithFolders returns an index with many folders, each of which is in the same cabinets. The last folder is also
// in the cabinet far, which is its last owner.
func indexWithFolders(many int) (x *Index, folders []iam.Owner) {
	x = New(nil)
	kinds := []string{"Cabinet", "Folder", "File"}
	for i, kind := range kinds {
		p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: kind}}
		p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "a", kind, strings.ToLower(kind)+"s", []string{"get"}
		for _, parent := range kinds[:i] {
			p.Spec.ParentResources = append(p.Spec.ParentResources, iamv1alpha1.ParentResourceRef{APIGroup: "a", Kind: parent})
		}
		x.SetProtectedResource(kind, p)
		x.SetTypeObserved("a/"+kind, true)
	}
	var cabinets []iam.Owner
	for i := range many {
		name := fmt.Sprint("n", i)
		x.SetTarget("a/Cabinet", "one", name, &iam.BindingTarget{Namespace: "one", UID: "2"})
		cabinets = append(cabinets, iam.Owner{Type: "a/Cabinet", Name: name, UID: "2"})
		folders = append(folders, iam.Owner{Type: "a/Folder", Name: name, UID: "2"})
	}
	for i, folder := range folders {
		if i == many-1 {
			cabinets = append(cabinets, iam.Owner{Type: "a/Cabinet", Name: "far", UID: "2"})
		}
		x.SetTarget(folder.Type, "one", folder.Name, &iam.BindingTarget{Namespace: "one", UID: "2", Owners: cabinets})
	}
	return x, folders
}
