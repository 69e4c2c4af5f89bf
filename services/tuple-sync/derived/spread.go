package derived

import (
	"cmp"
	"context"
	"errors"
	"slices"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// recent is the number of states of a name that always count: the newest two.
const recent = 2

// tupleHolderCheck reports whether an OpenFGA object may hold tuples now.
type tupleHolderCheck func(object string) bool

// affectedOpenFGAObjects returns the OpenFGA objects whose tuples depend on k, whether it exists or was deleted. A name may
// have had any number of earlier objects. Those count only while their OpenFGA objects may hold tuples.
func (s *State) affectedOpenFGAObjects(k event.Key, mayHold tupleHolderCheck) (objects []string) {
	switch k.GroupResource {
	case kinds.PolicyBindings().GroupResource:
		objects = openFGAObjectsOfVersions(s.bindings, k, mayHold, s.objectsOfBinding)
	case kinds.IAMRoles().GroupResource:
		objects = openFGAObjectsOfVersions(s.roles, k, mayHold, func(r *iamv1alpha1.Role, _ tupleHolderCheck) []string { return []string{iam.RoleObject(r)} })
	case kinds.IAMGroups().GroupResource:
		objects = openFGAObjectsOfVersions(s.groups, k, mayHold, func(g *iamv1alpha1.Group, _ tupleHolderCheck) []string {
			return []string{iam.GroupObject(g)}
		})
	case kinds.GroupMemberships().GroupResource:
		objects = openFGAObjectsOfVersions(s.memberships, k, mayHold, s.groupsOfMembership)
	}
	if f, _ := s.tableOf(k.GroupResource).liveOrDeleted(k); f.object != "" {
		objects = append(objects, f.object)
	}
	return objects
}

// openFGAObjectsOfVersions returns the OpenFGA objects of all states of a name. If no state older than the recent ones matters, it
// marks these as drained.
func openFGAObjectsOfVersions[T any, P objectConstraint[T]](
	t *table[T, P], k event.Key, mayHold tupleHolderCheck, of func(*T, tupleHolderCheck) []string,
) (objects []string) {
	all, resting := t.undrainedVersions(k), true
	for i, o := range all {
		if o.Value == nil {
			continue
		}
		for _, object := range of(o.Value, mayHold) {
			if needsTupleCheck(i, object, mayHold) {
				objects, resting = append(objects, object), resting && i < recent
			}
		}
	}
	if resting && len(all) > recent {
		t.markDrained(k, all[recent].Change)
	}
	return objects
}

// needsTupleCheck reports whether an OpenFGA object counts. The states of its name are ordered from new to old, and nth is the
// position.
func needsTupleCheck(nth int, object string, mayHold tupleHolderCheck) bool {
	return nth < recent || mayHold(object)
}

// affectedTupleHolders returns the objects of [State.affectedOpenFGAObjects] that can hold tuples. IAM's own kinds hold none unless a
// ProtectedResource registers them. A new registration enqueues everything.
func (s *State) affectedTupleHolders(k event.Key, mayHold tupleHolderCheck) []string {
	return slices.DeleteFunc(s.affectedOpenFGAObjects(k, mayHold), func(object string) bool {
		typ := iam.TypeOfObject(object)
		return s.types[typ] != nil && s.resources.rows.CountByIndex(byType, typ) == 0
	})
}

// statusDependsOn returns the OpenFGA objects that the status of k depends on. A binding's status also depends on the
// tuples of its role.
func (s *State) statusDependsOn(k event.Key, mayHold tupleHolderCheck) []string {
	objects := s.affectedOpenFGAObjects(k, mayHold)
	if b, ok := s.bindings.rows.Get(k); ok {
		if r := s.roles.getLive(cmp.Or(b.Value.Spec.RoleRef.Namespace, b.Value.Namespace), b.Value.Spec.RoleRef.Name); r != nil {
			objects = append(objects, iam.RoleObject(r))
		}
	}
	return objects
}

// objectsOfBinding returns the target of a binding, and its grants for all roles that have or had the name.
func (s *State) objectsOfBinding(b *iamv1alpha1.PolicyBinding, mayHold tupleHolderCheck) []string {
	target := iam.TargetOfBinding(b)
	objects := []string{target}
	for i, r := range s.roles.allVersions(s.roles.keyOf(cmp.Or(b.Spec.RoleRef.Namespace, b.Namespace), b.Spec.RoleRef.Name)) {
		if grant := iam.GrantObject(r, target); needsTupleCheck(i, grant, mayHold) {
			objects = append(objects, grant)
		}
	}
	return objects
}

// groupsOfMembership returns the groups that have or had the name.
func (s *State) groupsOfMembership(m *iamv1alpha1.GroupMembership, mayHold tupleHolderCheck) (objects []string) {
	for i, g := range s.groups.allVersions(s.groups.keyOf(m.Spec.GroupRef.Namespace, m.Spec.GroupRef.Name)) {
		if group := iam.GroupObject(g); needsTupleCheck(i, group, mayHold) {
			objects = append(objects, group)
		}
	}
	return objects
}

// membershipsOf returns the memberships of an OpenFGA group object. The pass watches them all, because their effect may
// change without an earlier link to this object.
func (s *State) membershipsOf(object string) (keys []event.Key) {
	for _, g := range s.groups.liveObjectsBy(itself, object) {
		for _, m := range s.memberships.liveObjectsBy(byGroup, namespacedPath(g.Key.Namespace, g.Key.Name)) {
			keys = append(keys, m.Key)
		}
	}
	return keys
}

// declaredDependentsOf returns the declared objects that depend on k, without k.
func (s *State) declaredDependentsOf(k event.Key) []event.Key {
	f, _ := s.tableOf(k.GroupResource).liveOrDeleted(k)
	if f.meta == nil {
		return nil
	}
	keys := map[event.Key]bool{}
	bindings := func(index, value string) {
		for _, b := range s.bindings.liveObjectsBy(index, value) {
			keys[b.Key] = true
		}
	}
	bindings(byTarget, f.object)
	for _, kind := range s.allTables() {
		for _, owned := range kind.objectsOwnedBy(ownerIndexKey(iam.TypeOfObject(f.object), k.Name)) {
			keys[owned.change.Key] = true
		}
	}
	switch k.GroupResource {
	case kinds.IAMRoles().GroupResource:
		bindings(byRole, namespacedPath(k.Namespace, k.Name))
		s.addInheritors(namespacedPath(k.Namespace, k.Name), keys)
	case kinds.IAMUsers().GroupResource:
		bindings(bySubject, subjectIndexKey(iamv1alpha1.UserKind, "", k.Name))
		for _, m := range s.memberships.liveObjectsBy(byUser, k.Name) {
			keys[m.Key] = true
		}
	case kinds.IAMServiceAccounts().GroupResource:
		bindings(bySubject, subjectIndexKey(iamv1alpha1.ServiceAccountKind, "", k.Name))
		for _, a := range s.accounts.allVersions(k) {
			bindings(bySubject, iam.ServiceAccountSubject(string(a.UID)))
		}
	case kinds.IAMGroups().GroupResource:
		bindings(bySubject, subjectIndexKey(iamv1alpha1.GroupKind, k.Namespace, k.Name))
		for _, m := range s.memberships.liveObjectsBy(byGroup, namespacedPath(k.Namespace, k.Name)) {
			keys[m.Key] = true
		}
	}
	delete(keys, k)
	all := make([]event.Key, 0, len(keys))
	for key := range keys {
		all = append(all, key)
	}
	return all
}

// addInheritors adds the roles that inherit a role, directly or not.
func (s *State) addInheritors(role string, keys map[event.Key]bool) {
	inheritors := s.inheritorsByRole()
	for queue := []string{role}; len(queue) > 0; queue = queue[1:] {
		for _, heir := range inheritors[queue[0]] {
			if !keys[heir] {
				keys[heir] = true
				queue = append(queue, namespacedPath(heir.Namespace, heir.Name))
			}
		}
	}
}

// enqueueDependents enqueues everything that depends on a declared object. It also removes the finalizer of a predecessor of this
// service.
func (r *Reconciler) enqueueDependents(ctx context.Context, p ReconcileRequest) error {
	r.State.clearRevoking(p.Key.owner)
	n, err := r.snapshotWithFreshReplica(ctx)
	if err != nil {
		r.State.markRevoking(p.Key.owner) // The retry is as urgent.
		return errors.Join(err, r.removeLegacyFinalizer(ctx, p))
	}
	if asked := r.asked.Load(); n != nil && asked != nil && *asked == n.moment {
		return r.removeLegacyFinalizer(ctx, p)
	}
	objects := map[string]bool{}
	for _, k := range append(r.State.declaredDependentsOf(p.Key.owner), p.Key.owner) {
		for _, object := range r.State.affectedTupleHolders(k, r.copy.canHoldTuples) {
			objects[object] = true
		}
		if k != p.Key.owner {
			r.requeueStatus(p, k)
		}
	}
	if n != nil {
		r.enqueueObjects(n, p, objects)
	}
	return r.removeLegacyFinalizer(ctx, p) // Last: nothing that is taken away waits for it.
}

// requeueStatus enqueues the record and the status of a declared object.
func (r *Reconciler) requeueStatus(p ReconcileRequest, k event.Key) {
	if k.Target {
		return
	}
	if isUIDRecordingKind(k.GroupResource) {
		p.Enqueue(changes, Key{sort: record, owner: k})
	}
	p.Enqueue(statuses, Key{sort: status, owner: k})
}

// legacyFinalizer returns the finalizer that a predecessor of this service set on a kind, or "".
func legacyFinalizer(kind event.GroupResource) string {
	switch kind {
	case kinds.IAMRoles().GroupResource:
		return iamv1alpha1.RoleFinalizer
	case kinds.PolicyBindings().GroupResource:
		return iamv1alpha1.PolicyBindingFinalizer
	case kinds.GroupMemberships().GroupResource:
		return iamv1alpha1.GroupMembershipFinalizer
	case kinds.IAMUsers().GroupResource, kinds.IAMServiceAccounts().GroupResource:
		return iamv1alpha1.SystemGroupFinalizer
	case kinds.Projects().GroupResource:
		return resourcemanagerv1alpha1.HierarchyFinalizer
	}
	return ""
}

// removeLegacyFinalizer removes the finalizer of a predecessor from a live object. No tuple follows from an object in deletion.
func (r *Reconciler) removeLegacyFinalizer(ctx context.Context, p ReconcileRequest) error {
	k := p.Key.owner
	held := legacyFinalizer(k.GroupResource)
	f, live := r.State.tableOf(k.GroupResource).liveOrDeleted(k)
	if !live || held == "" || !slices.Contains(f.meta.Finalizers, held) {
		return nil
	}
	kind, _ := kinds.ByResource(k.GroupResource)
	now, err := r.Cluster.RemoveFinalizer(ctx, kind, f.change, held)
	if err != nil {
		return err
	}
	p.Enqueue(spreads, p.Key) // Another version may have arrived meanwhile.
	return p.Reporter.RecordWrite(ctx, f.change, now)
}
