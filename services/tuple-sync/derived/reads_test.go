//go:build !race

package derived

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/seeds"
)

// lookupRead is one look-up of a computation: a name, or a value in an index. A look-up that finds nothing counts, too.
type lookupRead struct {
	kind         event.GroupResource
	index, value string
}

const (
	// byName stands for a look-up by namespace and name.
	byName = "name"
)

// recordReads returns a Lookup that passes every look-up to note before it makes it.
func recordReads(o *iam.DeclaredObjects, note func(lookupRead)) *iam.DeclaredObjects {
	r := *o
	r.Inheritance = nil // A cache would hide the look-ups of inherited roles.
	name := func(kind kinds.Kind, namespace, name string) {
		note(lookupRead{kind.GroupResource, byName, namespacedPath(namespace, name)})
	}
	r.Role = func(ns, n string) *iamv1alpha1.Role { name(kinds.IAMRoles(), ns, n); return o.Role(ns, n) }
	r.Group = func(ns, n string) *iamv1alpha1.Group { name(kinds.IAMGroups(), ns, n); return o.Group(ns, n) }
	r.User = func(n string) *iamv1alpha1.User { name(kinds.IAMUsers(), "", n); return o.User(n) }
	r.ServiceAccount = func(n string) *iamv1alpha1.ServiceAccount {
		name(kinds.IAMServiceAccounts(), "", n)
		return o.ServiceAccount(n)
	}
	r.Target = func(object string) (iam.BindingTarget, bool) {
		note(lookupRead{index: byObject, value: object})
		return o.Target(object)
	}
	r.Inactive = func(subject string) bool {
		note(lookupRead{kinds.IAMServiceAccounts().GroupResource, itself, subject})
		return o.Inactive(subject)
	}
	r.RoleOf = func(object string) *iamv1alpha1.Role {
		note(lookupRead{kinds.IAMRoles().GroupResource, itself, object})
		return o.RoleOf(object)
	}
	r.GroupOf = func(object string) *iamv1alpha1.Group {
		note(lookupRead{kinds.IAMGroups().GroupResource, itself, object})
		return o.GroupOf(object)
	}
	r.BindingsOn = func(target string) []*iamv1alpha1.PolicyBinding {
		note(lookupRead{kinds.PolicyBindings().GroupResource, byTarget, target})
		return o.BindingsOn(target)
	}
	r.BindingsBy = func(index string) []*iamv1alpha1.PolicyBinding {
		note(lookupRead{kinds.PolicyBindings().GroupResource, byGrant, index})
		return o.BindingsBy(index)
	}
	r.MembershipsOf = func(ns, n string) []*iamv1alpha1.GroupMembership {
		note(lookupRead{kinds.GroupMemberships().GroupResource, byGroup, namespacedPath(ns, n)})
		return o.MembershipsOf(ns, n)
	}
	return &r
}

// readsThatFind returns all look-ups that find a live object, and the OpenFGA objects that it alone brings into being.
func (s *State) readsThatFind(k event.Key) (reads []lookupRead, own []string) {
	f, live := s.tableOf(k.GroupResource).liveOrDeleted(k)
	if !live {
		return nil, nil
	}
	reads = []lookupRead{{k.GroupResource, byName, namespacedPath(k.Namespace, k.Name)}, {index: byObject, value: f.object}}
	found := func(index, value string) { reads = append(reads, lookupRead{k.GroupResource, index, value}) }
	own = []string{f.object}
	switch k.GroupResource {
	case kinds.IAMRoles().GroupResource:
		object := iam.RoleObject(s.roles.getLive(k.Namespace, k.Name))
		found(itself, object)
		own = append(own, object)
	case kinds.IAMGroups().GroupResource:
		object := iam.GroupObject(s.groups.getLive(k.Namespace, k.Name))
		found(itself, object)
		own = append(own, object)
	case kinds.IAMServiceAccounts().GroupResource:
		found(itself, iam.ServiceAccountSubject(string(s.accounts.getLive("", k.Name).UID)))
	case kinds.PolicyBindings().GroupResource:
		b := s.bindings.getLive(k.Namespace, k.Name)
		found(byTarget, iam.TargetOfBinding(b))
		found(byGrant, iam.RoleTargetIndexKey(b))
		own = append(own, iam.TargetOfBinding(b))
	case kinds.GroupMemberships().GroupResource:
		m := s.memberships.getLive(k.Namespace, k.Name)
		found(byGroup, namespacedPath(m.Spec.GroupRef.Namespace, m.Spec.GroupRef.Name))
	}
	return reads, own
}

// readSets holds the read set of every computed OpenFGA object, and compares what they name with what the product names.
type readSets struct {
	b *reconcilerEnv
	// found holds the look-ups that find each live object, and own what it alone brings into being.
	found map[event.Key][]lookupRead
	own   map[event.Key][]string
	// reads and desired hold the last computation of each OpenFGA object.
	reads   map[string]map[lookupRead]bool
	desired map[string][]iam.Tuple
	// routes holds the OpenFGA objects that each object affected before, as the controller does.
	routes map[event.Key][]string
	// changes counts the objects whose desired tuples changed.
	changes int
}

// watchReads compares after every change from now on.
func (b *reconcilerEnv) watchReads() *readSets {
	w := &readSets{
		b: b, found: map[event.Key][]lookupRead{}, own: map[event.Key][]string{}, reads: map[string]map[lookupRead]bool{}, desired: map[string][]iam.Tuple{},
		routes: map[event.Key][]string{},
	}
	for k := range b.api {
		if b.State.tableOf(k.GroupResource) != nil {
			w.compareAfter(k)
		}
	}
	b.View.OnChange(w.compareAfter)
	return w
}

// compute returns the desired tuples of an OpenFGA object, with its read set.
func (w *readSets) compute(object string) (desired []iam.Tuple, reads map[lookupRead]bool) {
	reads = map[lookupRead]bool{}
	store, known := w.b.State.iamStore()
	if !known {
		return nil, reads
	}
	o := w.b.State.declaredLookup(w.b.State.currentInputIdentity(store), w.b.model)
	return recordReads(o, func(r lookupRead) { reads[r] = true }).DesiredTuples(object), reads
}

// compareAfter requires that both ways name every OpenFGA object whose desired tuples the change of k changed. Every object
// with a look-up of k in its read set must be named by the product.
func (w *readSets) compareAfter(k event.Key) {
	s := w.b.State
	if s.tableOf(k.GroupResource) == nil || k.GroupResource == kinds.ProtectedResources().GroupResource {
		return
	}
	changed, byReads := w.found[k], map[string]bool{}
	for _, object := range w.own[k] {
		byReads[object] = true
	}
	w.found[k], w.own[k] = s.readsThatFind(k)
	for _, object := range w.own[k] {
		byReads[object] = true
	}
	for _, r := range slices.Concat(changed, w.found[k]) {
		for object, reads := range w.reads {
			if reads[r] {
				byReads[object] = true
			}
		}
	}
	named := w.namedBySpread(k)
	for object := range byReads { // A target that has a new grant brings that into being.
		desired, _ := w.compute(object)
		for _, t := range desired {
			if iam.TypeOfObject(t.User) == iam.GrantType && w.reads[t.User] == nil {
				byReads[t.User] = true
			}
		}
	}
	for _, object := range slices.Sorted(maps.Keys(w.reads)) {
		desired, _ := w.compute(object)
		differs := !slices.Equal(desired, w.desired[object])
		switch {
		case differs && !byReads[object]:
			w.b.t.Fatalf("%s changed %s, whose read set does not name it", k, object)
		case differs && !named[object]:
			w.b.t.Fatalf("%s changed %s, and nothing names it", k, object)
		case byReads[object] && !named[object] && len(desired) > 0:
			w.b.t.Fatalf("%s is read for %s, and nothing names it", k, object)
		}
	}
	for object := range byReads {
		if desired, _ := w.compute(object); len(desired) > 0 && !named[object] {
			w.b.t.Fatalf("%s brought %s into being, and nothing names it", k, object)
		}
		named[object] = true
	}
	for object := range named {
		before := w.desired[object]
		if w.desired[object], w.reads[object] = w.compute(object); !slices.Equal(before, w.desired[object]) {
			w.changes++
		}
	}
}

// namedBySpread returns the OpenFGA objects that a change of k enqueues.
func (w *readSets) namedBySpread(k event.Key) map[string]bool {
	named := map[string]bool{}
	name := func(objects []string) []string {
		for _, object := range objects {
			named[object] = true
		}
		return objects
	}
	for _, dependent := range w.b.State.declaredDependentsOf(k) {
		name(w.b.State.affectedTupleHolders(dependent, w.b.copy.canHoldTuples))
	}
	name(w.routes[k])
	w.routes[k] = name(w.b.State.affectedTupleHolders(k, w.b.copy.canHoldTuples))
	return named
}

// In random histories, the read sets and the spread of changes name the same OpenFGA objects.
func TestReadSetsAndSpreadNameSameObjects(t *testing.T) {
	for seed := range seeds.SeedRange(t, 30) {
		b, r := newReconcilerEnv(t), rand.New(rand.NewPCG(seed, 3))
		b.owned()
		w := b.watchReads()
		for range 60 {
			b.anythingOwned(r)
			b.try(r.IntN(6))
		}
		if w.changes == 0 {
			t.Fatalf("history %d changed nothing", seed)
		}
	}
}

// anythingOwned does one thing of [reconcilerEnv.anything], or one with service accounts or documents.
func (b *reconcilerEnv) anythingOwned(r *rand.Rand) {
	b.t.Helper()
	switch r.IntN(16) {
	case 0:
		a := &iamv1alpha1.ServiceAccount{}
		if r.IntN(2) == 0 {
			a.Spec.State = iamv1alpha1.Inactive
		}
		b.put(kinds.IAMServiceAccounts(), "robot", a)
	case 1:
		b.drop(kinds.IAMServiceAccounts(), "robot")
	case 2:
		robot := b.subject(kinds.IAMServiceAccounts(), "robot")
		if r.IntN(2) == 0 {
			robot.Namespace = ns
		}
		b.bind("robot", "role-0", robot)
	case 3, 4:
		b.doc("mine", []string{"", "web", "api", "project-0"}[r.IntN(4)])
	case 5:
		b.drop(docKind(), "mine")
	case 6:
		b.bindDoc("mine")
	default:
		b.anything(r)
	}
}

// The kinds of change in which a name means another object than before.
func TestReadSetsNameChangesOfNames(t *testing.T) {
	for name, steps := range map[string][]func(*reconcilerEnv){
		"everything comes later than the binding": {
			func(b *reconcilerEnv) {
				b.bind("late", "later", iamv1alpha1.Subject{Kind: "User", Name: "late", UID: "late"}, iamv1alpha1.Subject{Kind: "Group", Name: "oidc:x"})
			},
			func(b *reconcilerEnv) { b.put(kinds.IAMUsers(), "late", &iamv1alpha1.User{}) },
			func(b *reconcilerEnv) {
				b.put(kinds.IAMRoles(), "later", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{InheritedRoles: []iamv1alpha1.ScopedRoleReference{{Name: "base"}}}})
			},
			func(b *reconcilerEnv) {
				b.put(kinds.IAMRoles(), "base", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{getDoc}}})
			},
		},
		"a role, a user and a group are created again": {
			func(b *reconcilerEnv) { b.drop(kinds.IAMRoles(), "viewer") },
			func(b *reconcilerEnv) { b.put(kinds.IAMRoles(), "viewer", &iamv1alpha1.Role{}) },
			func(b *reconcilerEnv) {
				b.drop(kinds.IAMUsers(), "bob")
				b.put(kinds.IAMUsers(), "bob", &iamv1alpha1.User{})
			},
			func(b *reconcilerEnv) {
				b.drop(kinds.IAMGroups(), "staff")
				b.put(kinds.IAMGroups(), "staff", &iamv1alpha1.Group{})
			},
		},
		"a binding and a role are narrowed": {
			func(b *reconcilerEnv) { b.bind("staff", "viewer", b.subject(kinds.IAMUsers(), "alice")) },
			func(b *reconcilerEnv) { b.put(kinds.IAMRoles(), "viewer", &iamv1alpha1.Role{}) },
		},
		"an object and a project move to another owner": {
			func(b *reconcilerEnv) { b.doc("mine", "api") },
			func(b *reconcilerEnv) { b.put(kinds.Organizations(), "other", &resourcemanagerv1alpha1.Organization{}) },
			func(b *reconcilerEnv) { b.project("web", "other") },
			func(b *reconcilerEnv) { b.drop(kinds.Projects(), "api") },
		},
		"a member moves to another group": {
			func(b *reconcilerEnv) { b.put(kinds.IAMGroups(), "others", &iamv1alpha1.Group{}) },
			func(b *reconcilerEnv) { b.join("alice-staff", "alice", "others") },
			func(b *reconcilerEnv) { b.join("alice-staff", "bob", "others") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReconcilerEnv(t)
			b.peopled()
			b.owned()
			w := b.watchReads()
			for i, step := range steps {
				step(b)
				b.work()
				if i == len(steps)-1 && w.changes == 0 {
					t.Error("nothing changed")
				}
			}
		})
	}
}
