//go:build integration

package tuplesync_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/tuple-sync/derived/plan"
)

func TestTupleSyncConvergesOnIAMUnderRandomFaults(t *testing.T) {
	b := newIAMTestEnv(t)
	foreign := "store:other#owner@user:eve"
	b.write(b.id, []string{foreign}, nil)
	b.register("configmap", mapType, "configmaps", projectType)
	b.remodel()
	reflector := b.StartReflector(configMaps())
	t.Cleanup(func() { b.unmap("map-0", "map-1", "map-2", "map-3") })
	torture := &testenv.DisruptionSuite{
		Env: b.Env, Reflector: reflector, Service: topology.TupleSync, OpenFGA: true,
		Serve:        func() *testenv.RunningService { return b.serve() },
		RandomChange: b.anything, CheckBackend: func() error { return b.follows(foreign) },
		ExtraDisruptions: []testenv.Disruption{
			{Name: "old states are published again, once more", Run: func(*rand.Rand) { reflector.RepublishAll() }},
			{Name: "a kind goes, and comes back", Run: func(r *rand.Rand) {
				b.remove(kinds.ProtectedResources(), "project")
				b.remodel()
				for range 5 {
					b.anything(r)
				}
				b.register("project", projectType, "projects", orgType)
				b.remodel()
			}},
			{Name: "the store is lost, and store-sync makes another", Run: func(*rand.Rand) {
				if err := b.hand.DeleteStore(t.Context(), b.id); err != nil {
					t.Fatal(err)
				}
				b.makeStore()
				b.write(b.id, []string{foreign}, nil)
			}},
			{Name: "the store is emptied", Run: func(*rand.Rand) {
				b.write(b.id, nil, slices.DeleteFunc(b.holds(b.id), func(t string) bool { return t == foreign }))
			}},
		},
		Rounds: 3, ChangesPerDisruption: 8, ChangeInterval: 15 * time.Millisecond, ConvergeTimeout: 3 * soon, FailurePercent: 10,
	}
	torture.Run()
}

// anything does one thing that people do.
func (b *iamTestEnv) anything(r *rand.Rand) {
	b.T.Helper()
	some := func(prefix string) string { return fmt.Sprintf("%s-%d", prefix, r.IntN(4)) }
	switch r.IntN(13) {
	case 0:
		b.user(some("user"))
	case 1:
		b.project(some("project"), some("org"))
	case 2:
		b.org(some("org"))
	case 3:
		b.role(some("role"), []string{some("role")}, []string{getProject, editProject, "core.miloapis.com/configmaps.get", "a.example/nothings.get"}[:r.IntN(5)]...)
	case 4:
		b.apply(kinds.IAMGroups(), some("group"), nil)
	case 5:
		b.join(some("member")+fmt.Sprint(r.IntN(1000)), some("user"), metav1.ObjectMeta{Namespace: ns, Name: some("group")})
	case 6, 7:
		b.bindAny(r, some)
	case 11, 12:
		b.mapAny(r, some("map"))
	case 8: // Somebody else's hand: a way in that nobody declares, for something that somebody does.
		mine := slices.DeleteFunc(b.holds(b.id), func(t string) bool { return !iam.IsIAMObject(t) })
		b.write(b.id, []string{iam.GroupType + ":" + some("door") + "#member@" + iam.UserSubject("eve")}, mine[:min(1, len(mine))])
	default:
		of := []kinds.Kind{kinds.IAMUsers(), kinds.Projects(), kinds.Organizations(), kinds.IAMRoles(), kinds.IAMGroups(), kinds.GroupMemberships(), kinds.PolicyBindings()}
		all := b.List(of[r.IntN(len(of))])
		if n := len(all.Items); n > 0 {
			kind := of[slices.IndexFunc(of, func(k kinds.Kind) bool { return k.Kind == all.Items[0].GetKind() })]
			b.remove(kind, all.Items[r.IntN(n)].GetName())
		}
	}
}

// mapAny has a ConfigMap of a name be of another project, or of none: as the same object, or made anew; or it goes.
func (b *iamTestEnv) mapAny(r *rand.Rand, name string) {
	b.T.Helper()
	is, err := b.maps().Get(b.T.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || r.IntN(2) == 0 {
		b.unmap(name)
		if r.IntN(4) > 0 {
			b.configMap(name, b.anyProject(r))
		}
		return
	}
	if err != nil {
		b.T.Fatal(err)
	}
	is.OwnerReferences = owners(b.anyProject(r))
	if _, err := b.maps().Update(b.T.Context(), is, metav1.UpdateOptions{}); err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
		b.T.Fatal(err)
	}
}

// unmap deletes ConfigMaps.
func (b *iamTestEnv) unmap(names ...string) {
	b.T.Helper()
	for _, name := range names {
		if err := b.maps().Delete(context.WithoutCancel(b.T.Context()), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
			b.T.Fatal(err)
		}
	}
}

// anyProject is one that is there; nil if it is to be none.
func (b *iamTestEnv) anyProject(r *rand.Rand) *metav1.ObjectMeta {
	b.T.Helper()
	all := b.List(kinds.Projects()).Items
	if len(all) == 0 || r.IntN(3) == 0 {
		return nil
	}
	o := all[r.IntN(len(all))]
	return &metav1.ObjectMeta{Name: o.GetName(), UID: o.GetUID()}
}

// bindAny binds a role to whom there is, or makes a binding of somebody who is not there.
func (b *iamTestEnv) bindAny(r *rand.Rand, some func(string) string) {
	b.T.Helper()
	subject := iamv1alpha1.Subject{Kind: "User", Name: "nobody", UID: "1"}
	for kind, of := range map[string]kinds.Kind{"User": kinds.IAMUsers(), "Group": kinds.IAMGroups()} {
		if all := b.List(of).Items; len(all) > 0 {
			o := all[r.IntN(len(all))]
			subject = iamv1alpha1.Subject{Kind: kind, Name: o.GetName(), Namespace: o.GetNamespace(), UID: string(o.GetUID())}
		}
	}
	target := on(projectType)
	if p := b.anyProject(r); p != nil {
		target = on(projectType, *p)
	}
	if all := b.List(configMaps()).Items; len(all) > 0 && r.IntN(2) == 0 {
		o := all[r.IntN(len(all))]
		target = on(mapType, metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID()})
	}
	b.bindings++
	b.bind(fmt.Sprintf("binding-%d", b.bindings), some("role"), target, subject)
}

// follows compares the store with what the objects come to, and wants every status to be about the present.
func (b *iamTestEnv) follows(others ...string) error {
	b.T.Helper()
	want := others
	objects, wanted := b.wanted()
	for _, t := range wanted {
		want = append(want, t.Object+"#"+t.Relation+"@"+t.User)
	}
	slices.Sort(want)
	want = slices.Compact(want)
	if got := b.holds(b.id); !slices.Equal(got, want) {
		return fmt.Errorf("the store holds %d tuples, want %d:\n%v\n%v", len(got), len(want), got, want)
	}
	return b.says(objects)
}

// says wants every status to say what is so, so that nothing is left to be written.
func (b *iamTestEnv) says(o *iam.DeclaredObjects) error {
	b.T.Helper()
	var errs []error
	check := func(m metav1.ObjectMeta, has []metav1.Condition, want []condition.Condition) {
		for _, w := range condition.MergeConditions(nil, nil, m.Generation, metav1.Time{}, want...) {
			c := meta.FindStatusCondition(has, w.Type)
			if _, differs := condition.FindChangedCondition(has, []metav1.Condition{w}, w.Type); differs || c.ObservedGeneration != m.Generation {
				errs = append(errs, fmt.Errorf("%s at generation %d says %+v, want %+v", m.Name, m.Generation, c, w))
			}
		}
	}
	for _, r := range listed[iamv1alpha1.Role](b, kinds.IAMRoles()) {
		effective, want := plan.RoleConditions(o, r)
		check(r.ObjectMeta, r.Status.Conditions, want)
		if !slices.Equal(effective, r.Status.EffectivePermissions) {
			errs = append(errs, fmt.Errorf("Role %s gives %v, want %v", r.Name, r.Status.EffectivePermissions, effective))
		}
	}
	for _, p := range listed[iamv1alpha1.PolicyBinding](b, kinds.PolicyBindings()) {
		check(p.ObjectMeta, p.Status.Conditions, plan.PolicyBindingConditions(o, p))
	}
	for _, m := range listed[iamv1alpha1.GroupMembership](b, kinds.GroupMemberships()) {
		check(m.ObjectMeta, m.Status.Conditions, plan.GroupMembershipConditions(o, m))
	}
	for _, p := range listed[iamv1alpha1.ProtectedResource](b, kinds.ProtectedResources()) {
		check(p.ObjectMeta, p.Status.Conditions, []condition.Condition{plan.ObservedCondition(true, false, "")})
	}
	for _, u := range listed[iamv1alpha1.User](b, kinds.IAMUsers()) {
		check(u.ObjectMeta, u.Status.Conditions, []condition.Condition{plan.UserCondition(u)})
	}
	for _, g := range listed[iamv1alpha1.Group](b, kinds.IAMGroups()) {
		check(g.ObjectMeta, g.Status.Conditions, []condition.Condition{plan.GroupCondition(g)})
	}
	for _, a := range listed[resourcemanagerv1alpha1.Organization](b, kinds.Organizations()) {
		check(a.ObjectMeta, a.Status.Conditions, []condition.Condition{plan.OrganizationCondition(a)})
	}
	for _, p := range listed[resourcemanagerv1alpha1.Project](b, kinds.Projects()) {
		check(p.ObjectMeta, p.Status.Conditions, []condition.Condition{plan.ProjectCondition(o, p)})
	}
	return errors.Join(errs...)
}

// listed are the objects of a kind.
func listed[T any](b *iamTestEnv, kind kinds.Kind) (all []*T) {
	b.T.Helper()
	for _, u := range b.List(kind).Items {
		all = append(all, decode[T](b.testEnv, u))
	}
	return all
}

// wanted are all tuples, by the pure function of what the API server has.
func (b *iamTestEnv) wanted() (o *iam.DeclaredObjects, all []iam.Tuple) {
	b.T.Helper()
	roles, groups := listed[iamv1alpha1.Role](b, kinds.IAMRoles()), listed[iamv1alpha1.Group](b, kinds.IAMGroups())
	bindings, memberships := listed[iamv1alpha1.PolicyBinding](b, kinds.PolicyBindings()), listed[iamv1alpha1.GroupMembership](b, kinds.GroupMemberships())
	users := listed[iamv1alpha1.User](b, kinds.IAMUsers())
	targets := map[string]iam.BindingTarget{}
	for _, p := range listed[resourcemanagerv1alpha1.Project](b, kinds.Projects()) {
		targets[iam.OpenFGAObject(projectType, "", p.Name)], _ = iam.TargetOfProject(p)
	}
	for _, o := range listed[resourcemanagerv1alpha1.Organization](b, kinds.Organizations()) {
		targets[iam.OpenFGAObject(orgType, "", o.Name)], _ = iam.TargetOfObject(&o.ObjectMeta)
	}
	for _, u := range b.List(configMaps()).Items {
		m := metav1.ObjectMeta{Namespace: u.GetNamespace(), Name: u.GetName(), UID: u.GetUID(), OwnerReferences: u.GetOwnerReferences(), DeletionTimestamp: u.GetDeletionTimestamp()}
		if target, alive := iam.TargetOfObject(&m); alive {
			targets[iamObject(m)] = target
		}
	}
	o = &iam.DeclaredObjects{
		Registry: iam.NewRegistry(listed[iamv1alpha1.ProtectedResource](b, kinds.ProtectedResources())),
		Role: func(_, name string) *iamv1alpha1.Role {
			return one(roles, func(r *iamv1alpha1.Role) bool { return r.Name == name })
		},
		RoleOf: func(object string) *iamv1alpha1.Role {
			return one(roles, func(r *iamv1alpha1.Role) bool { return iam.RoleObject(r) == object })
		},
		Group: func(_, name string) *iamv1alpha1.Group {
			return one(groups, func(g *iamv1alpha1.Group) bool { return g.Name == name })
		},
		GroupOf: func(object string) *iamv1alpha1.Group {
			return one(groups, func(g *iamv1alpha1.Group) bool { return iam.GroupObject(g) == object })
		},
		User: func(name string) *iamv1alpha1.User {
			return one(users, func(u *iamv1alpha1.User) bool { return u.Name == name })
		},
		ServiceAccount: func(string) *iamv1alpha1.ServiceAccount { return nil },
		Target:         func(object string) (iam.BindingTarget, bool) { target, ok := targets[object]; return target, ok },
		BindingsOn: func(target string) []*iamv1alpha1.PolicyBinding {
			return slices.DeleteFunc(slices.Clone(bindings), func(b *iamv1alpha1.PolicyBinding) bool { return iam.TargetOfBinding(b) != target })
		},
		BindingsBy: func(index string) []*iamv1alpha1.PolicyBinding {
			return slices.DeleteFunc(slices.Clone(bindings), func(b *iamv1alpha1.PolicyBinding) bool { return iam.RoleTargetIndexKey(b) != index })
		},
		MembershipsOf: func(_, name string) []*iamv1alpha1.GroupMembership {
			return slices.DeleteFunc(slices.Clone(memberships), func(m *iamv1alpha1.GroupMembership) bool { return m.Spec.GroupRef.Name != name })
		},
	}
	for _, r := range roles {
		all = append(all, o.DesiredTuples(iam.RoleObject(r))...)
		for _, b := range bindings {
			all = append(all, o.DesiredTuples(iam.GrantObject(r, iam.TargetOfBinding(b)))...)
		}
	}
	for _, g := range groups {
		all = append(all, o.DesiredTuples(iam.GroupObject(g))...)
	}
	for _, b := range bindings {
		all = append(all, o.DesiredTuples(iam.TargetOfBinding(b))...)
	}
	for object := range targets {
		all = append(all, o.DesiredTuples(object)...)
	}
	return o, all
}

func one[T any](all []*T, is func(*T) bool) *T {
	if i := slices.IndexFunc(all, is); i >= 0 {
		return all[i]
	}
	return nil
}
