package world

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
)

// World is a random set of declared objects.
type World struct {
	Random *rand.Rand

	// TrustUnfollowed makes bindings on objects of the kind Unfollowed take effect, even if the objects do not exist.
	TrustUnfollowed bool

	createdObjects int
	Resources      []*iamv1alpha1.ProtectedResource
	Roles          []*iamv1alpha1.Role
	Bindings       []*iamv1alpha1.PolicyBinding
	Users          []*iamv1alpha1.User
	Accounts       []*iamv1alpha1.ServiceAccount
	Groups         []*iamv1alpha1.Group
	Memberships    []*iamv1alpha1.GroupMembership
	Targets        []*TargetObject
}

// TargetObject is an object of a kind that can be registered.
type TargetObject struct {
	metav1.ObjectMeta

	Type string
	// Organization is the organization's name in the spec of a project. Recorded is the organization in its status.
	Organization string
	Recorded     *resourcemanagerv1alpha1.ProjectOrganization
}

// Types of objects with special rules.
const (
	Organization = "resourcemanager.miloapis.com/Organization"
	Project      = "resourcemanager.miloapis.com/Project"
	// Unfollowed is the kind that is not watched in worlds with [World.TrustUnfollowed].
	Unfollowed = "b.example/Alone"
)

// IsTrusted reports whether bindings on objects of a type take effect even if the objects do not exist.
func (w *World) IsTrusted(typ string) bool { return w.TrustUnfollowed && typ == Unfollowed }

// AsProject returns the object as a Project, or nil for another type.
func (t *TargetObject) AsProject() *resourcemanagerv1alpha1.Project {
	if t.Type != Project {
		return nil
	}
	p := &resourcemanagerv1alpha1.Project{ObjectMeta: t.ObjectMeta}
	p.Spec.OwnerRef.Name, p.Status.Organization = t.Organization, t.Recorded
	return p
}

// worldKind describes a kind in the worlds.
type worldKind struct {
	typ, plural string
	namespaced  bool
	// parents lists the usual parent kinds.
	parents []string
}

func worldKinds() []worldKind {
	return []worldKind{
		{Organization, "organizations", false, nil},
		{Project, "projects", false, []string{Organization}},
		{"a.example/Folder", "folders", false, []string{Project, Organization}},
		{"core.miloapis.com/Namespace", "namespaces", false, []string{Project}},
		{"a.example/Widget", "widgets", true, []string{"core.miloapis.com/Namespace", "a.example/Folder"}},
		{"a.example/Part", "parts", true, []string{"a.example/Widget"}},
		{Unfollowed, "alones", true, nil},
	}
}

// NewRandom returns a world. Equal seeds give equal worlds.
func NewRandom(seed uint64) *World {
	w := &World{Random: rand.New(rand.NewPCG(seed, seed)), TrustUnfollowed: seed%2 == 1}
	for _, kind := range worldKinds() {
		if !w.hasRandomChance(8) {
			w.addRandomResource(kind)
		}
	}
	for _, p := range w.Resources {
		if !w.hasRandomChance(3) {
			w.recordRandomRegistration(p)
		}
	}
	if w.hasRandomChance(3) { // Two ProtectedResources can claim the same kind.
		w.addRandomResource(pickRandom(w, worldKinds()))
	}
	for range 6 {
		w.addRandomUser()
	}
	for range 3 {
		w.addRandomAccount()
		w.addRandomGroup()
	}
	for range 6 {
		w.addRandomMembership()
		w.addRandomRole()
	}
	for range 24 {
		w.addRandomTarget()
	}
	for _, t := range w.Targets {
		if t.Type == Project && !w.hasRandomChance(5) {
			w.recordRandomOrganization(t)
		}
	}
	for range 16 {
		w.addRandomBinding()
	}
	return w
}

func (w *World) hasRandomChance(in int) bool { return w.Random.IntN(in) == 0 }

func pickRandom[T any](w *World, of []T) (t T) {
	if len(of) > 0 {
		t = of[w.Random.IntN(len(of))]
	}
	return t
}

func (w *World) newMeta(namespace, name string) metav1.ObjectMeta {
	w.createdObjects++
	return metav1.ObjectMeta{
		Namespace: namespace, Name: name, UID: types.UID(fmt.Sprintf("uid-%d", w.createdObjects)), Generation: 1,
		CreationTimestamp: metav1.NewTime(time.Unix(int64(w.createdObjects), 0)),
	}
}

// randomUIDMostlyRight returns the UID of an object, or rarely a wrong one.
func (w *World) randomUIDMostlyRight(m metav1.ObjectMeta) string {
	if w.hasRandomChance(12) {
		return fmt.Sprintf("uid-%d", w.Random.IntN(w.createdObjects+1))
	}
	return string(m.UID)
}

func (w *World) randomNamespace() string { return pickRandom(w, []string{"n1", "n2"}) }

func (w *World) randomVerbs() []string {
	verbs := []string{"get"}
	for _, verb := range []string{"list", "create", "status.get"} {
		if !w.hasRandomChance(3) {
			verbs = append(verbs, verb)
		}
	}
	return verbs
}

// randomPermission returns a permission that may be registered.
func (w *World) randomPermission() string {
	kind := pickRandom(w, worldKinds())
	plural := kind.plural
	if w.hasRandomChance(12) {
		plural = "nothings"
	}
	return strings.Split(kind.typ, "/")[0] + "/" + plural + pickRandom(w, []string{".get", ".list", ".create", "/status.get"})
}

func (w *World) addRandomResource(kind worldKind) {
	p := &iamv1alpha1.ProtectedResource{ObjectMeta: w.newMeta("", fmt.Sprintf("resource-%d", w.createdObjects))}
	group, name, _ := strings.Cut(kind.typ, "/")
	p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = group, name, kind.plural, w.randomVerbs()
	parents := slices.Clone(kind.parents)
	if w.hasRandomChance(4) {
		parents = append(parents, pickRandom(w, worldKinds()).typ)
	}
	if w.hasRandomChance(8) {
		parents = append(parents, "x.example/None")
	}
	for _, parent := range parents {
		g, k, _ := strings.Cut(parent, "/")
		p.Spec.ParentResources = append(p.Spec.ParentResources, iamv1alpha1.ParentResourceRef{APIGroup: g, Kind: k})
	}
	w.Resources = append(w.Resources, p)
}

func (w *World) addRandomUser() {
	name := pickRandom(w, []string{"alice", "bob", "carol", "dave:x y", "sa/uid-1"})
	if slices.ContainsFunc(w.Users, func(u *iamv1alpha1.User) bool { return u.Name == name }) {
		return
	}
	u := &iamv1alpha1.User{ObjectMeta: w.newMeta("", name)}
	if w.hasRandomChance(10) {
		u.Status.State = iamv1alpha1.Inactive
	}
	w.Users = append(w.Users, u)
}

func (w *World) addRandomAccount() {
	name := pickRandom(w, []string{"builder", "deployer"})
	if slices.ContainsFunc(w.Accounts, func(a *iamv1alpha1.ServiceAccount) bool { return a.Name == name }) {
		return
	}
	a := &iamv1alpha1.ServiceAccount{ObjectMeta: w.newMeta("", name)}
	if w.hasRandomChance(4) {
		a.Spec.State = iamv1alpha1.Inactive
	}
	w.Accounts = append(w.Accounts, a)
}

func (w *World) addRandomGroup() {
	namespace, name := w.randomNamespace(), pickRandom(w, []string{"staff", "ops"})
	if !slices.ContainsFunc(w.Groups, func(g *iamv1alpha1.Group) bool { return g.Namespace == namespace && g.Name == name }) {
		w.Groups = append(w.Groups, &iamv1alpha1.Group{ObjectMeta: w.newMeta(namespace, name)})
	}
}

func (w *World) addRandomMembership() {
	m := &iamv1alpha1.GroupMembership{ObjectMeta: w.newMeta(w.randomNamespace(), fmt.Sprintf("m-%d", w.createdObjects))}
	m.Spec.UserRef.Name, m.Spec.GroupRef.Name, m.Spec.GroupRef.Namespace = "alice", "staff", w.randomNamespace()
	if u := pickRandom(w, w.Users); u != nil {
		m.Spec.UserRef.Name = u.Name
		if !w.hasRandomChance(5) {
			m.Status.User = &iamv1alpha1.Member{Name: pickRandom(w, []string{u.Name, "alice"}), UID: w.randomUIDMostlyRight(u.ObjectMeta)}
		}
	}
	if w.hasRandomChance(4) {
		m.Spec.GroupRef.Name = "ops"
	}
	w.Memberships = append(w.Memberships, m)
}

func (w *World) addRandomRole() {
	namespace, name := w.randomNamespace(), fmt.Sprintf("role-%d", w.Random.IntN(4))
	if slices.ContainsFunc(w.Roles, func(r *iamv1alpha1.Role) bool { return r.Namespace == namespace && r.Name == name }) {
		return
	}
	r := &iamv1alpha1.Role{ObjectMeta: w.newMeta(namespace, name)}
	for range 2 + w.Random.IntN(7) {
		r.Spec.IncludedPermissions = append(r.Spec.IncludedPermissions, w.randomPermission())
	}
	for range w.Random.IntN(3) {
		r.Spec.InheritedRoles = append(r.Spec.InheritedRoles, iamv1alpha1.ScopedRoleReference{
			Name: fmt.Sprintf("role-%d", w.Random.IntN(5)), Namespace: pickRandom(w, []string{"", "n1", "n2"}),
		})
	}
	w.Roles = append(w.Roles, r)
}

func (w *World) addRandomTarget() {
	kind := pickRandom(w, worldKinds())
	namespace, name := "", pickRandom(w, []string{"x", "y", "z:1"})
	if kind.namespaced {
		namespace = w.randomNamespace()
	}
	if strings.HasSuffix(kind.typ, "/Namespace") {
		name = w.randomNamespace()
	}
	if slices.ContainsFunc(w.Targets, func(t *TargetObject) bool { return t.Type == kind.typ && t.Namespace == namespace && t.Name == name }) {
		return
	}
	t := &TargetObject{ObjectMeta: w.newMeta(namespace, name), Type: kind.typ, Organization: pickRandom(w, []string{"x", "y", "z:1"})}
	for range 1 + w.Random.IntN(2) {
		if owner := w.randomOwner(kind); owner != nil {
			group, kind, _ := strings.Cut(owner.Type, "/")
			group = strings.TrimPrefix(group, iamv1alpha1.CoreGroup)
			version := strings.TrimPrefix(group+"/v1", "/")
			ref := metav1.OwnerReference{APIVersion: version, Kind: kind, Name: owner.Name, UID: types.UID(w.randomUIDMostlyRight(owner.ObjectMeta))}
			t.OwnerReferences = append(t.OwnerReferences, ref)
		}
	}
	w.recordRandomOrganization(t)
	w.Targets = append(w.Targets, t)
}

// recordRandomOrganization sets the organization in the status of a project, sometimes a wrong one.
func (w *World) recordRandomOrganization(t *TargetObject) {
	if o := FindFirst(w.Targets, func(o *TargetObject) bool { return o.Type == Organization && o.Name == t.Organization }); o != nil && !w.hasRandomChance(6) {
		t.Recorded = &resourcemanagerv1alpha1.ProjectOrganization{
			Name: pickRandom(w, []string{o.Name, o.Name, o.Name, "x"}),
			UID:  w.randomUIDMostlyRight(o.ObjectMeta),
		}
	}
}

// randomOwner returns an object, usually one of a parent kind.
func (w *World) randomOwner(kind worldKind) *TargetObject {
	likely := slices.DeleteFunc(slices.Clone(w.Targets), func(t *TargetObject) bool { return !slices.Contains(kind.parents, t.Type) })
	if w.hasRandomChance(4) {
		likely = w.Targets
	}
	return pickRandom(w, likely)
}

func (w *World) addRandomBinding() {
	b := &iamv1alpha1.PolicyBinding{ObjectMeta: w.newMeta(w.randomNamespace(), fmt.Sprintf("b-%d", w.createdObjects))}
	b.Spec.RoleRef.Name = "role-9"
	if r := pickRandom(w, w.Roles); r != nil {
		b.Spec.RoleRef.Name, b.Spec.RoleRef.Namespace = r.Name, r.Namespace
		if w.hasRandomChance(3) {
			b.Spec.RoleRef.Namespace = ""
		}
	}
	b.Spec.Subjects = w.randomSubjects()
	t := pickRandom(w, w.Targets)
	if t == nil || w.hasRandomChance(4) {
		group, kind, _ := strings.Cut(pickRandom(w, worldKinds()).typ, "/")
		b.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: group, Kind: kind}
	} else {
		group, kind, _ := strings.Cut(t.Type, "/")
		group = strings.TrimPrefix(group, pickRandom(w, []string{iamv1alpha1.CoreGroup, "-"}))
		b.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{
			APIGroup: group, Kind: kind, Name: t.Name, Namespace: t.Namespace, UID: w.randomUIDMostlyRight(t.ObjectMeta),
		}
	}
	w.Bindings = append(w.Bindings, b)
}

func (w *World) randomSubjects() []iamv1alpha1.Subject {
	var all []iamv1alpha1.Subject
	for range 1 + w.Random.IntN(3) {
		switch w.Random.IntN(4) {
		case 0:
			all = append(all, iamv1alpha1.Subject{Kind: "Group", Name: pickRandom(w, TokenGroups())})
		case 1:
			if g := pickRandom(w, w.Groups); g != nil {
				all = append(all, iamv1alpha1.Subject{Kind: "Group", Name: g.Name, Namespace: g.Namespace, UID: w.randomUIDMostlyRight(g.ObjectMeta)})
			}
		case 2:
			if a := pickRandom(w, w.Accounts); a != nil {
				namespace := pickRandom(w, []string{"", "", "core"})
				all = append(all, iamv1alpha1.Subject{Kind: "ServiceAccount", Name: a.Name, UID: w.randomUIDMostlyRight(a.ObjectMeta), Namespace: namespace})
			}
		default:
			if u := pickRandom(w, w.Users); u != nil {
				all = append(all, iamv1alpha1.Subject{Kind: "User", Name: u.Name, UID: w.randomUIDMostlyRight(u.ObjectMeta)})
			}
		}
	}
	return all
}

// TokenGroups lists the groups that the authenticator reports in worlds.
func TokenGroups() []string {
	return []string{"system:authenticated", "oidc:a_b", "oidc_a:b", "oidc:Domain Users"}
}

// FindFirst returns the first element for which the function returns true, or the zero value.
func FindFirst[T any](in []T, matches func(T) bool) (t T) {
	if i := slices.IndexFunc(in, matches); i >= 0 {
		t = in[i]
	}
	return t
}
