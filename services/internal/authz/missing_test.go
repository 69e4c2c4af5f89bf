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

// Who lacks nothing to bind a role has on its target all that it gives.
func TestWhoMayBindHasWhatIsGiven(t *testing.T) {
	found := map[string]int{}
	everyWorld(t, func(w *world.World, x *Index) {
		for range questions {
			who := question(w.Ask()).Subject
			for _, b := range w.Bindings {
				m, lacks := x.MissingToBind(who, b.Namespace, &b.Spec)
				_, known := x.permissions[m.Permission]
				switch {
				case lacks && known && x.may(who, m.Permission, x.meant(&b.Spec)):
					t.Fatalf("%+v is said to lack %s on %v", who, m.Permission, m.At)
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
			t.Errorf("nobody was told %q: %v", what, found)
		}
	}
}

// gaveAll wants who may bind to have all that a binding gives, and says how much that is.
func (x *Index) gaveAll(t *testing.T, who Subject, b *iamv1alpha1.PolicyBinding) int {
	t.Helper()
	at, _, _ := placeOf(b.Spec.ResourceSelector)
	role := Ref{cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace), b.Spec.RoleRef.Name}
	permissions, ok := x.giving(role)
	if !ok || x.kinds[at.Type] == nil {
		t.Fatalf("nobody has what %v will give on %v", role, at)
	}
	for _, permission := range permissions {
		if _, known := x.permissions[permission]; !known {
			t.Fatalf("nobody has %s", permission)
		}
	}
	gives := x.Permissions(role, at)
	for _, permission := range gives {
		if !x.may(who, permission, x.meant(&b.Spec)) {
			t.Fatalf("%+v may bind %v on %v without %s", who, role, at, permission)
		}
	}
	return len(gives)
}

// meant is what a binding is on. What somebody has on another object of the name is not had on this one.
func (x *Index) meant(b *iamv1alpha1.PolicyBindingSpec) Scope {
	at, uid, _ := placeOf(b.ResourceSelector)
	if p := x.places[at]; p != nil && p.target != nil && p.target.UID != uid {
		at.Name = ""
	}
	return at
}

// Who lacks nothing to join a group, or to give a role what another has, has that.
func TestWhoMayJoinOrIncludeHasWhatIsGiven(t *testing.T) {
	joined, included, lacking := 0, 0, 0
	everyWorld(t, func(w *world.World, x *Index) {
		for range questions {
			who := question(w.Ask()).Subject
			for _, g := range w.Groups {
				group := Ref{g.Namespace, g.Name}
				p := x.principals[Principal{Group, group, x.groups[group]}]
				if _, lacks := x.MissingToJoin(who, group); lacks || p == nil {
					lacking++
					continue
				}
				for g := range p.grants.allGrants() {
					for _, permission := range x.Permissions(g.role.Ref, g.at.Scope) {
						if joined++; g.at.isCounted(g.uid) && !x.may(who, permission, g.at.Scope) {
							t.Fatalf("%+v may join %v without %s on %v", who, group, permission, g.at.Scope)
						}
					}
				}
			}
			for _, name := range x.names {
				if _, lacks := x.MissingToInclude(who, []string{name}, nil); lacks == x.may(who, name, Scope{}) {
					t.Fatalf("%+v lacks %s to include it: %v", who, name, lacks)
				} else if !lacks {
					included++
				}
			}
			for _, r := range w.Roles {
				role := Ref{r.Namespace, r.Name}
				given, ok := x.giving(role)
				if _, lacks := x.MissingToInclude(who, nil, []Ref{role}); !lacks && (!ok ||
					slices.ContainsFunc(given, func(name string) bool { return !x.may(who, name, Scope{}) })) {
					t.Fatalf("%+v may have %v inherited, and lacks some of %v", who, role, given)
				}
			}
		}
	})
	if joined == 0 || included == 0 || lacking == 0 {
		t.Errorf("%d were joined, %d included, %d lacking", joined, included, lacking)
	}
}

// By another owner nobody gets on an object what who gave it to that one does not have.
func TestWhoMayGiveAnObjectAwayHasWhatOthersGet(t *testing.T) {
	gained, refused := 0, 0
	everyWorld(t, func(w *world.World, x *Index) {
		for i, o := range w.Things {
			k, was := x.kinds[o.Type], targetOf(o)
			if k == nil || was == nil {
				continue
			}
			other := w.Things[(i+1)%len(w.Things)]
			owner := iam.Owner{Type: other.Type, Name: other.Name, UID: string(other.UID)}
			who, at := question(w.Ask()).Subject, Scope{Type: o.Type, Ref: Ref{o.Namespace, o.Name}}
			if _, lacks := x.MissingToOwn(who, at, was.UID, []iam.Owner{owner}); lacks {
				refused++
				continue
			}
			before := x.answers(w, k, at)
			has := map[string]bool{}
			for _, permission := range x.namesOf(k.held, k.held, nil) {
				has[permission] = x.may(who, permission, at)
			}
			is := *was
			is.Owners = append(slices.Clone(was.Owners), owner)
			x.SetTarget(o.Type, o.Namespace, o.Name, &is)
			for q := range x.answers(w, k, at) {
				if gained++; !before[q] && !has[q[1]] {
					t.Fatalf("%+v gives %s %s on %v by the owner %+v, without having it", who, q[0], q[1], at, owner)
				}
			}
			x.SetTarget(o.Type, o.Namespace, o.Name, was)
		}
	})
	if gained == 0 || refused == 0 {
		t.Errorf("%d were allowed, %d refused", gained, refused)
	}
}

// answers are all users who may do something to an object, each with what.
func (x *Index) answers(w *world.World, k *kind, at Scope) map[[2]string]bool {
	all := map[[2]string]bool{}
	for _, u := range w.Users {
		for _, permission := range x.namesOf(k.held, k.held, nil) {
			q := Query{Subject: Subject{User: u.Name}, Permission: permission, Type: at.Type, Namespace: at.Namespace, Name: at.Name}
			if _, allowed := x.Decide(q); allowed {
				all[[2]string{u.Name, permission}] = true
			}
		}
	}
	return all
}

// may asks what guards of bindings must agree with: a permission on an object or on all of a kind, or on everything that has it.
func (x *Index) may(s Subject, permission string, at Scope) bool {
	q := Query{Subject: s, Permission: permission, Type: at.Type, Namespace: at.Namespace, Name: at.Name}
	if _, allowed := x.Decide(q); allowed {
		return true
	}
	q.Type, q.Namespace, q.Name = x.owners[x.permissions[permission]], "", ""
	_, allowed := x.Decide(q)
	return allowed
}

// giving are all permissions that a role says, registered or not, and those of all that it inherits. It is not ok if one of
// these is not declared.
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

// What is not known to be there now may be there, or be found again: a watcher that was away knows nothing of objects at first.
func TestWhatMayBeThereIsLacked(t *testing.T) {
	const cabinet, folder, file = "a.example/Cabinet", "a.example/Folder", "a.example/File"
	owned := func(owners ...iam.Owner) *iam.Target { return &iam.Target{Namespace: "n", UID: "u", Owners: owners} }
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
			t.Errorf("%s: %v, %+v", when, lacks, m)
		}
	}
	give := func(when string, want bool) {
		t.Helper()
		m, lacks := x.MissingToOwn(Subject{User: "mallory"}, Scope{Type: file, Ref: Ref{"n", "it"}}, "u", []iam.Owner{{Type: folder, Name: "mine", UID: "u"}})
		if lacks != want {
			t.Errorf("%s: %v, %+v", when, lacks, m)
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
	x.SetObserved(cabinet, true)
	join("as long as nobody registers the kind", true)
	register(cabinet)
	register(folder, cabinet, namespaceType)
	register(file, folder)
	join("the object is not there", false)
	x.SetObserved(cabinet, false)
	join("nobody looks for the object", true)
	x.SetTarget(cabinet, "n", "c", &iam.Target{Namespace: "n", UID: "other"})
	join("another object is there", false)
	x.SetTarget(cabinet, "n", "c", nil)

	x.SetTarget(file, "n", "it", owned())
	x.SetTarget(folder, "n", "mine", owned())
	give("the folder is nobody's", false)
	x.SetTarget(folder, "n", "mine", owned(iam.Owner{Type: "b.example/Other", Name: "c", UID: "u"}))
	give("the folder is of what is no parent", false)
	x.SetTarget(folder, "n", "mine", owned(iam.Owner{Type: cabinet, Name: "c", UID: "u"}))
	give("nobody looks for whose the folder is", true)
	x.SetObserved(cabinet, true)
	give("the folder is of nothing that is there", false)
	x.SetTarget(cabinet, "n", "c", owned())
	give("others have the folder", true)
	x.SetTarget(cabinet, "n", "c", nil)
	register(namespaceType)
	give("nobody looks for namespaces", true)
	x.SetObserved(namespaceType, true)
	give("the namespace is nobody's", false)
}
