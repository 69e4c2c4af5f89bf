package authz

import (
	"cmp"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/iam/world"
)

// TestMissingToBindIsSound verifies that a subject for which MissingToBind returns nothing holds all permissions
// that the role gives on the target.
func TestMissingToBindIsSound(t *testing.T) {
	found := map[string]int{}
	forEachRandomWorld(t, func(w *world.World, x *Index) {
		for range questions {
			who := newQuery(w.RandomRequest()).Subject
			for _, b := range w.Bindings {
				m, lacks := x.MissingToBind(who, b.Namespace, &b.Spec)
				_, known := x.permissions[m.Permission]
				switch {
				case lacks && known && x.may(who, m.Permission, x.meant(&b.Spec)):
					t.Fatalf("MissingToBind(%+v) returned %s on %v, which the subject has", who, m.Permission, m.At)
				case lacks && known:
					found["lacks it"]++
				case lacks && m.Permission != "":
					found["unregistered permission"]++
				case lacks && m.At.Type != "":
					found["unregistered kind"]++
				case lacks:
					found["no role"]++
				default:
					found["has it"] += x.gaveAll(t, who, b)
				}
			}
		}
	})
	for _, what := range []string{"has it", "lacks it", "unregistered permission", "no role", "unregistered kind"} {
		if found[what] == 0 {
			t.Errorf("no case %q occurred: %v", what, found)
		}
	}
}

// gaveAll fails the test unless the subject has all permissions that a binding gives. It returns the number of these
// permissions.
func (x *Index) gaveAll(t *testing.T, who Subject, b *iamv1alpha1.PolicyBinding) int {
	t.Helper()
	at, _, _ := scopeOfSelector(b.Spec.ResourceSelector)
	role := Ref{cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace), b.Spec.RoleRef.Name}
	permissions, ok := x.giving(role)
	if !ok || x.kinds[at.Type] == nil {
		t.Fatalf("MissingToBind accepted role %v on %v, which is not resolved", role, at)
	}
	for _, permission := range permissions {
		if _, known := x.permissions[permission]; !known {
			t.Fatalf("MissingToBind accepted the unregistered permission %s", permission)
		}
	}
	gives := x.RolePermissionsOn(role, at)
	for _, permission := range gives {
		if !x.may(who, permission, x.meant(&b.Spec)) {
			t.Fatalf("MissingToBind: %+v may bind %v on %v without %s", who, role, at, permission)
		}
	}
	return len(gives)
}

// meant returns the scope of a binding. If an object with another UID has the name, it returns the scope without the
// name, because permissions on that object do not matter.
func (x *Index) meant(b *iamv1alpha1.PolicyBindingSpec) Scope {
	at, uid, _ := scopeOfSelector(b.ResourceSelector)
	if p := x.places[at]; p != nil && p.target != nil && p.target.UID != uid {
		at.Name = ""
	}
	return at
}

// TestMissingToJoinAndIncludeAreSound verifies that a subject for which MissingToJoin or MissingToInclude returns
// nothing holds the permissions of the group or the roles.
func TestMissingToJoinAndIncludeAreSound(t *testing.T) {
	joined, included, lacking := 0, 0, 0
	forEachRandomWorld(t, func(w *world.World, x *Index) {
		for range questions {
			who := newQuery(w.RandomRequest()).Subject
			for _, g := range w.Groups {
				group := Ref{g.Namespace, g.Name}
				p := x.principals[Principal{Group, group, x.groups[group]}]
				if _, lacks := x.MissingToJoin(who, group); lacks || p == nil {
					lacking++
					continue
				}
				for g := range p.grants.allGrants() {
					for _, permission := range x.RolePermissionsOn(g.role.Ref, g.at.Scope) {
						if joined++; g.at.isEffectiveFor(g.uid) && !x.may(who, permission, g.at.Scope) {
							t.Fatalf("MissingToJoin: %+v may join %v without %s on %v", who, group, permission, g.at.Scope)
						}
					}
				}
			}
			for _, name := range x.names {
				if _, lacks := x.MissingToInclude(who, []string{name}, nil); lacks == x.may(who, name, Scope{}) {
					t.Fatalf("MissingToInclude(%+v, %s): got lacks %v", who, name, lacks)
				} else if !lacks {
					included++
				}
			}
			for _, r := range w.Roles {
				role := Ref{r.Namespace, r.Name}
				given, ok := x.giving(role)
				if _, lacks := x.MissingToInclude(who, nil, []Ref{role}); !lacks && (!ok ||
					slices.ContainsFunc(given, func(name string) bool { return !x.may(who, name, Scope{}) })) {
					t.Fatalf("MissingToInclude: %+v may inherit %v without some of %v", who, role, given)
				}
			}
		}
	})
	if joined == 0 || included == 0 || lacking == 0 {
		t.Errorf("got %d joins, %d inclusions, %d refusals, want some of each", joined, included, lacking)
	}
}

// TestMissingToSetOwnersIsSound adds an owner to an object. No user may gain a permission on the object
// that the author of the change lacks.
func TestMissingToSetOwnersIsSound(t *testing.T) {
	gained, refused := 0, 0
	forEachRandomWorld(t, func(w *world.World, x *Index) {
		for i, o := range w.Targets {
			k, was := x.kinds[o.Type], targetOf(o)
			if k == nil || was == nil {
				continue
			}
			other := w.Targets[(i+1)%len(w.Targets)]
			owner := iam.Owner{Type: other.Type, Name: other.Name, UID: string(other.UID)}
			who, at := newQuery(w.RandomRequest()).Subject, Scope{Type: o.Type, Ref: Ref{o.Namespace, o.Name}}
			if _, lacks := x.MissingToSetOwners(who, at, was.UID, []iam.Owner{owner}); lacks {
				refused++
				continue
			}
			before := x.answers(w, k, at)
			has := map[string]bool{}
			for _, permission := range x.permissionNames(k.grantable, k.grantable, nil) {
				has[permission] = x.may(who, permission, at)
			}
			is := *was
			is.Owners = append(slices.Clone(was.Owners), owner)
			x.SetTarget(o.Type, o.Namespace, o.Name, &is)
			for q := range x.answers(w, k, at) {
				if gained++; !before[q] && !has[q[1]] {
					t.Fatalf("MissingToOwn: %+v gives %s %s on %v by owner %+v, but lacks it", who, q[0], q[1], at, owner)
				}
			}
			x.SetTarget(o.Type, o.Namespace, o.Name, was)
		}
	})
	if gained == 0 || refused == 0 {
		t.Errorf("got %d allowed, %d refused, want some of each", gained, refused)
	}
}

// answers returns all pairs of a user and a permission that the user has on an object.
func (x *Index) answers(w *world.World, k *registeredKind, at Scope) map[[2]string]bool {
	all := map[[2]string]bool{}
	for _, u := range w.Users {
		for _, permission := range x.permissionNames(k.grantable, k.grantable, nil) {
			q := Query{Subject: Subject{User: u.Name}, Permission: permission, Type: at.Type, Namespace: at.Namespace, Name: at.Name}
			if _, allowed := x.Decide(q); allowed {
				all[[2]string{u.Name, permission}] = true
			}
		}
	}
	return all
}

// may reports whether a subject has a permission on a scope, or on all objects of the kind that registers the
// permission. The Missing methods must agree with may.
func (x *Index) may(s Subject, permission string, at Scope) bool {
	q := Query{Subject: s, Permission: permission, Type: at.Type, Namespace: at.Namespace, Name: at.Name}
	if _, allowed := x.Decide(q); allowed {
		return true
	}
	q.Type, q.Namespace, q.Name = x.owners[x.permissions[permission]], "", ""
	_, allowed := x.Decide(q)
	return allowed
}

// giving lists all permissions of a role and of all roles that it inherits, registered or not. ok is false if one of
// these roles is not declared.
func (x *Index) giving(of Ref) (permissions []string, ok bool) {
	seen := map[*role]bool{}
	for queue := []*role{x.roles[of]}; len(queue) > 0; queue = queue[1:] {
		r := queue[0]
		if r == nil || !r.declared {
			return nil, false
		}
		permissions = append(permissions, r.included...)
		for _, inherited := range r.inherits {
			if !seen[inherited] {
				seen[inherited] = true
				queue = append(queue, inherited)
			}
		}
	}
	return permissions, true
}

// TestMissingRightCountsUnobservedObjects verifies that grants on objects of unobserved types count as missing rights.
// Such objects may exist, because an informer holds no objects at first.
func TestMissingRightCountsUnobservedObjects(t *testing.T) {
	const cabinet, folder, file = "a.example/Cabinet", "a.example/Folder", "a.example/File"
	owned := func(owners ...iam.Owner) *iam.BindingTarget {
		return &iam.BindingTarget{Namespace: "n", UID: "u", Owners: owners}
	}
	x := New(nil)
	x.SetGroup("n", "g", &iamv1alpha1.Group{ObjectMeta: metav1.ObjectMeta{UID: "g"}})
	bind := func(typ, namespace, name string) {
		b := &iamv1alpha1.PolicyBinding{}
		b.Spec.RoleRef.Name = "r"
		b.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "Group", Namespace: "n", Name: "g", UID: "g"}}
		group, kind, _ := strings.Cut(typ, "/")
		b.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: group, Kind: kind, Namespace: namespace, Name: name, UID: "u"}
		x.SetBinding("n", kind, b)
	}
	join := func(when string, want bool) {
		t.Helper()
		if m, lacks := x.MissingToJoin(Subject{User: "mallory"}, Ref{"n", "g"}); lacks != want {
			t.Errorf("%s: got lacks %v, %+v, want %v", when, lacks, m, want)
		}
	}
	give := func(when string, want bool) {
		t.Helper()
		m, lacks := x.MissingToSetOwners(Subject{User: "mallory"}, Scope{Type: file, Ref: Ref{"n", "it"}}, "u", []iam.Owner{{Type: folder, Name: "mine", UID: "u"}})
		if lacks != want {
			t.Errorf("%s: got lacks %v, %+v, want %v", when, lacks, m, want)
		}
	}
	register := func(typ string, parents ...string) {
		p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: strings.ToLower(typ)}}
		group, kind, _ := strings.Cut(typ, "/")
		p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = group, kind, strings.ToLower(kind)+"s", []string{"get"}
		for _, parent := range parents {
			group, kind, _ := strings.Cut(parent, "/")
			p.Spec.ParentResources = append(p.Spec.ParentResources, iamv1alpha1.ParentResourceRef{APIGroup: group, Kind: kind})
		}
		x.SetProtectedResource(p.Name, p)
	}
	x.SetRole("n", "r", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a.example/files.get"}}})
	bind(cabinet, "n", "c")
	x.SetTypeObserved(cabinet, true)
	join("kind not registered", true)
	register(cabinet)
	register(folder, cabinet, namespaceType)
	register(file, folder)
	join("object does not exist", false)
	x.SetTypeObserved(cabinet, false)
	join("kind of the object not observed", true)
	x.SetTarget(cabinet, "n", "c", &iam.BindingTarget{Namespace: "n", UID: "other"})
	join("another object of the same name", false)
	x.SetTarget(cabinet, "n", "c", nil)

	x.SetTarget(file, "n", "it", owned())
	x.SetTarget(folder, "n", "mine", owned())
	give("folder without owner", false)
	x.SetTarget(folder, "n", "mine", owned(iam.Owner{Type: "b.example/Other", Name: "c", UID: "u"}))
	give("owner of a kind that is no parent", false)
	x.SetTarget(folder, "n", "mine", owned(iam.Owner{Type: cabinet, Name: "c", UID: "u"}))
	give("kind of the owner not observed", true)
	x.SetTypeObserved(cabinet, true)
	give("owner does not exist", false)
	x.SetTarget(cabinet, "n", "c", owned())
	give("owner with grants", true)
	x.SetTarget(cabinet, "n", "c", nil)
	register(namespaceType)
	give("namespaces not observed", true)
	x.SetTypeObserved(namespaceType, true)
	give("namespace without grants", false)
}
