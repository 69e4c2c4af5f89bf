package iam

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// world is a set of declared objects, as odd as they can be.
type world struct {
	*rand.Rand

	made        int
	resources   []*iamv1alpha1.ProtectedResource
	roles       []*iamv1alpha1.Role
	bindings    []*iamv1alpha1.PolicyBinding
	users       []*iamv1alpha1.User
	accounts    []*iamv1alpha1.ServiceAccount
	groups      []*iamv1alpha1.Group
	memberships []*iamv1alpha1.GroupMembership
	things      []*thing
}

// thing is an object of a kind that may be registered.
type thing struct {
	metav1.ObjectMeta

	typ string
}

// kindOf is a kind that worlds have.
type kindOf struct {
	typ, plural string
	namespaced  bool
	// parents are the likely ones.
	parents []string
}

func kindsOfWorlds() []kindOf {
	return []kindOf{
		{"resourcemanager.miloapis.com/Organization", "organizations", false, nil},
		{"resourcemanager.miloapis.com/Project", "projects", false, []string{"resourcemanager.miloapis.com/Organization"}},
		{"a.example/Folder", "folders", false, []string{"resourcemanager.miloapis.com/Project", "resourcemanager.miloapis.com/Organization"}},
		{"core.miloapis.com/Namespace", "namespaces", false, []string{"resourcemanager.miloapis.com/Project"}},
		{"a.example/Widget", "widgets", true, []string{"core.miloapis.com/Namespace", "a.example/Folder"}},
		{"a.example/Part", "parts", true, []string{"a.example/Widget"}},
		{"b.example/Alone", "alones", true, nil},
	}
}

func newWorld(seed uint64) *world {
	w := &world{Rand: rand.New(rand.NewPCG(seed, seed))}
	for _, kind := range kindsOfWorlds() {
		if !w.one(8) {
			w.addResource(kind)
		}
	}
	if w.one(3) { // Two claim one kind.
		w.addResource(pick(w, kindsOfWorlds()))
	}
	for range 6 {
		w.addUser()
	}
	for range 3 {
		w.addAccount()
		w.addGroup()
	}
	for range 6 {
		w.addMembership()
		w.addRole()
	}
	for range 24 {
		w.addThing()
	}
	for range 16 {
		w.addBinding()
	}
	return w
}

func (w *world) one(in int) bool { return w.IntN(in) == 0 }

func pick[T any](w *world, of []T) (t T) {
	if len(of) > 0 {
		t = of[w.IntN(len(of))]
	}
	return t
}

func (w *world) meta(namespace, name string) metav1.ObjectMeta {
	w.made++
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("uid-%d", w.made)), Generation: 1,
		CreationTimestamp: metav1.NewTime(time.Unix(int64(w.made), 0)),
	}
}

// uid is that of an object, or another.
func (w *world) uid(m metav1.ObjectMeta) string {
	if w.one(12) {
		return fmt.Sprintf("uid-%d", w.IntN(w.made+1))
	}
	return string(m.UID)
}

func (w *world) namespace() string { return pick(w, []string{"n1", "n2"}) }

func (w *world) verbs() []string {
	verbs := []string{"get"}
	for _, verb := range []string{"list", "create", "status.get"} {
		if !w.one(3) {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// permission is one that may be registered.
func (w *world) permission() string {
	kind := pick(w, kindsOfWorlds())
	plural := kind.plural
	if w.one(12) {
		plural = "nothings"
	}
	return strings.Split(kind.typ, "/")[0] + "/" + plural + pick(w, []string{".get", ".list", ".create", "/status.get"})
}

func (w *world) addResource(kind kindOf) {
	p := &iamv1alpha1.ProtectedResource{ObjectMeta: w.meta("", fmt.Sprintf("resource-%d", w.made))}
	group, name, _ := strings.Cut(kind.typ, "/")
	p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = group, name, kind.plural, w.verbs()
	parents := slices.Clone(kind.parents)
	if w.one(4) {
		parents = append(parents, pick(w, kindsOfWorlds()).typ)
	}
	if w.one(8) {
		parents = append(parents, "x.example/None")
	}
	for _, parent := range parents {
		g, k, _ := strings.Cut(parent, "/")
		p.Spec.ParentResources = append(p.Spec.ParentResources, iamv1alpha1.ParentResourceRef{APIGroup: g, Kind: k})
	}
	w.resources = append(w.resources, p)
}

func (w *world) addUser() {
	name := pick(w, []string{"alice", "bob", "carol", "dave:x y", "sa/uid-1"})
	if slices.ContainsFunc(w.users, func(u *iamv1alpha1.User) bool { return u.Name == name }) {
		return
	}
	u := &iamv1alpha1.User{ObjectMeta: w.meta("", name)}
	if w.one(6) {
		u.Status.State = iamv1alpha1.Inactive
	}
	w.users = append(w.users, u)
}

func (w *world) addAccount() {
	name := pick(w, []string{"builder", "deployer"})
	if slices.ContainsFunc(w.accounts, func(a *iamv1alpha1.ServiceAccount) bool { return a.Name == name }) {
		return
	}
	a := &iamv1alpha1.ServiceAccount{ObjectMeta: w.meta("", name)}
	if w.one(4) {
		a.Spec.State = iamv1alpha1.Inactive
	}
	w.accounts = append(w.accounts, a)
}

func (w *world) addGroup() {
	namespace, name := w.namespace(), pick(w, []string{"staff", "ops"})
	if !slices.ContainsFunc(w.groups, func(g *iamv1alpha1.Group) bool { return g.Namespace == namespace && g.Name == name }) {
		w.groups = append(w.groups, &iamv1alpha1.Group{ObjectMeta: w.meta(namespace, name)})
	}
}

func (w *world) addMembership() {
	m := &iamv1alpha1.GroupMembership{ObjectMeta: w.meta(w.namespace(), fmt.Sprintf("m-%d", w.made))}
	m.Spec.UserRef.Name, m.Spec.GroupRef.Name, m.Spec.GroupRef.Namespace = "alice", "staff", w.namespace()
	if u := pick(w, w.users); u != nil {
		m.Spec.UserRef.Name = u.Name
		if !w.one(5) {
			m.Status.User = &iamv1alpha1.Member{Name: pick(w, []string{u.Name, "alice"}), UID: w.uid(u.ObjectMeta)}
		}
	}
	if w.one(4) {
		m.Spec.GroupRef.Name = "ops"
	}
	w.memberships = append(w.memberships, m)
}

func (w *world) addRole() {
	namespace, name := w.namespace(), fmt.Sprintf("role-%d", w.IntN(4))
	if slices.ContainsFunc(w.roles, func(r *iamv1alpha1.Role) bool { return r.Namespace == namespace && r.Name == name }) {
		return
	}
	r := &iamv1alpha1.Role{ObjectMeta: w.meta(namespace, name)}
	for range 2 + w.IntN(7) {
		r.Spec.IncludedPermissions = append(r.Spec.IncludedPermissions, w.permission())
	}
	for range w.IntN(3) {
		r.Spec.InheritedRoles = append(r.Spec.InheritedRoles, iamv1alpha1.ScopedRoleReference{
			Name: fmt.Sprintf("role-%d", w.IntN(5)), Namespace: pick(w, []string{"", "n1", "n2"}),
		})
	}
	w.roles = append(w.roles, r)
}

func (w *world) addThing() {
	kind := pick(w, kindsOfWorlds())
	namespace, name := "", pick(w, []string{"x", "y", "z:1"})
	if kind.namespaced {
		namespace = w.namespace()
	}
	if strings.HasSuffix(kind.typ, "/Namespace") {
		name = w.namespace()
	}
	if slices.ContainsFunc(w.things, func(t *thing) bool { return t.typ == kind.typ && t.Namespace == namespace && t.Name == name }) {
		return
	}
	t := &thing{w.meta(namespace, name), kind.typ}
	for range 1 + w.IntN(2) {
		if owner := w.owner(kind); owner != nil {
			group, kind, _ := strings.Cut(owner.typ, "/")
			group = strings.TrimPrefix(group, iamv1alpha1.CoreGroup)
			version := strings.TrimPrefix(group+"/v1", "/")
			t.OwnerReferences = append(t.OwnerReferences, metav1.OwnerReference{APIVersion: version, Kind: kind, Name: owner.Name, UID: types.UID(w.uid(owner.ObjectMeta))})
		}
	}
	w.things = append(w.things, t)
}

// owner is some thing, most likely one that can be a parent.
func (w *world) owner(kind kindOf) *thing {
	likely := slices.DeleteFunc(slices.Clone(w.things), func(t *thing) bool { return !slices.Contains(kind.parents, t.typ) })
	if w.one(4) {
		likely = w.things
	}
	return pick(w, likely)
}

func (w *world) addBinding() {
	b := &iamv1alpha1.PolicyBinding{ObjectMeta: w.meta(w.namespace(), fmt.Sprintf("b-%d", w.made))}
	b.Spec.RoleRef.Name = "role-9"
	if r := pick(w, w.roles); r != nil {
		b.Spec.RoleRef.Name, b.Spec.RoleRef.Namespace = r.Name, r.Namespace
		if w.one(3) {
			b.Spec.RoleRef.Namespace = ""
		}
	}
	b.Spec.Subjects = w.subjects()
	t := pick(w, w.things)
	if t == nil || w.one(4) {
		group, kind, _ := strings.Cut(pick(w, kindsOfWorlds()).typ, "/")
		b.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: group, Kind: kind}
	} else {
		group, kind, _ := strings.Cut(t.typ, "/")
		group = strings.TrimPrefix(group, pick(w, []string{iamv1alpha1.CoreGroup, "-"}))
		b.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{
			APIGroup: group, Kind: kind, Name: t.Name, Namespace: t.Namespace, UID: w.uid(t.ObjectMeta),
		}
	}
	w.bindings = append(w.bindings, b)
}

func (w *world) subjects() []iamv1alpha1.Subject {
	var all []iamv1alpha1.Subject
	for range 1 + w.IntN(3) {
		switch w.IntN(4) {
		case 0:
			all = append(all, iamv1alpha1.Subject{Kind: "Group", Name: pick(w, tokenGroups())})
		case 1:
			if g := pick(w, w.groups); g != nil {
				all = append(all, iamv1alpha1.Subject{Kind: "Group", Name: g.Name, Namespace: g.Namespace, UID: w.uid(g.ObjectMeta)})
			}
		case 2:
			if a := pick(w, w.accounts); a != nil {
				all = append(all, iamv1alpha1.Subject{Kind: "ServiceAccount", Name: a.Name, UID: w.uid(a.ObjectMeta), Namespace: pick(w, []string{"", "", "core"})})
			}
		default:
			if u := pick(w, w.users); u != nil {
				all = append(all, iamv1alpha1.Subject{Kind: "User", Name: u.Name, UID: w.uid(u.ObjectMeta)})
			}
		}
	}
	return all
}

func tokenGroups() []string {
	return []string{"system:authenticated", "oidc:a_b", "oidc_a:b", "oidc:Domain Users"}
}
