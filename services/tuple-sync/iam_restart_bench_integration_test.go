//go:build integration

package tuplesync_test

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/tuple-sync/derived/plan"
)

func uidOf(name string) types.UID { return types.UID("0a1b2c3d-0000-0000-0000-" + name) }

// restartedService are all objects of a start with bindings, with what was said of each, by what finds them.
type restartedService struct {
	role     *iamv1alpha1.Role
	org      *resourcemanagerv1alpha1.Organization
	users    map[string]*iamv1alpha1.User
	projects map[string]*resourcemanagerv1alpha1.Project
	bindings []*iamv1alpha1.PolicyBinding
	// on and by are the bindings by target and by grant.
	on, by map[string][]*iamv1alpha1.PolicyBinding
}

func newRestartedService(bindings, projects, users int) *restartedService {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uidOf(name), Generation: 1}
	}
	r := &restartedService{
		role: &iamv1alpha1.Role{ObjectMeta: meta(ns, "viewer")}, org: &resourcemanagerv1alpha1.Organization{ObjectMeta: meta("", "acme")},
		users: map[string]*iamv1alpha1.User{}, projects: map[string]*resourcemanagerv1alpha1.Project{},
		on: map[string][]*iamv1alpha1.PolicyBinding{}, by: map[string][]*iamv1alpha1.PolicyBinding{},
	}
	r.role.Spec.IncludedPermissions = []string{getProject}
	for i := range users {
		name := fmt.Sprint("user-", i)
		r.users[name] = &iamv1alpha1.User{ObjectMeta: meta("", name)}
	}
	for i := range projects {
		name := fmt.Sprint("project-", i)
		p := &resourcemanagerv1alpha1.Project{ObjectMeta: meta("", name)}
		p.Spec.OwnerRef = resourcemanagerv1alpha1.OwnerReference{Kind: "Organization", Name: r.org.Name}
		p.Status.Organization = &resourcemanagerv1alpha1.ProjectOrganization{Name: r.org.Name, UID: string(r.org.UID)}
		r.projects[name] = p
	}
	for i := range bindings {
		p := &iamv1alpha1.PolicyBinding{ObjectMeta: meta(ns, fmt.Sprint("binding-", i))}
		p.Spec.RoleRef.Name = "viewer"
		p.Spec.Subjects = []iamv1alpha1.Subject{user(r.users[fmt.Sprint("user-", i%users)].ObjectMeta)}
		p.Spec.ResourceSelector = on(projectType, r.projects[fmt.Sprint("project-", i%projects)].ObjectMeta)
		r.bindings = append(r.bindings, p)
		r.on[iam.TargetOfBinding(p)] = append(r.on[iam.TargetOfBinding(p)], p)
		r.by[iam.RoleTargetIndexKey(p)] = append(r.by[iam.RoleTargetIndexKey(p)], p)
	}
	return r
}

// objects are they as decisions see them.
func (r *restartedService) objects(resources []*iamv1alpha1.ProtectedResource) *iam.DeclaredObjects {
	return &iam.DeclaredObjects{
		Registry: iam.NewRegistry(resources),
		Role:     func(string, string) *iamv1alpha1.Role { return r.role },
		RoleOf: func(object string) *iamv1alpha1.Role {
			return map[string]*iamv1alpha1.Role{iam.RoleObject(r.role): r.role}[object]
		},
		GroupOf: func(string) *iamv1alpha1.Group { return nil },
		User:    func(name string) *iamv1alpha1.User { return r.users[name] },
		Target: func(object string) (iam.BindingTarget, bool) {
			if object == iam.OpenFGAObject(orgType, "", r.org.Name) {
				return iam.TargetOfObject(&r.org.ObjectMeta)
			}
			for _, p := range r.on[object] {
				return iam.TargetOfProject(r.projects[p.Spec.ResourceSelector.ResourceRef.Name])
			}
			return iam.BindingTarget{}, false
		},
		BindingsOn: func(target string) []*iamv1alpha1.PolicyBinding { return r.on[target] },
		BindingsBy: func(index string) []*iamv1alpha1.PolicyBinding { return r.by[index] },
	}
}

// say puts into all objects what was said of them. Of what lacks it the API server would be asked, which has none of them.
func (r *restartedService) say(o *iam.DeclaredObjects) {
	now := metav1.Now().Rfc3339Copy()
	ready := func(is condition.Condition) []metav1.Condition {
		return condition.MergeConditions(nil, []string{iamv1alpha1.Ready}, 1, now, is)
	}
	r.org.Status.Conditions = ready(plan.OrganizationCondition(r.org))
	for _, u := range r.users {
		u.Status.Conditions = ready(plan.UserCondition(u))
	}
	for _, p := range r.projects {
		p.Status.Conditions = ready(plan.ProjectCondition(o, p))
	}
	gives, conditions := plan.RoleConditions(o, r.role)
	r.role.Status.EffectivePermissions, r.role.Status.ObservedGeneration = gives, 1
	r.role.Status.Conditions = condition.MergeConditions(nil, plan.RoleConditionTypes(), 1, now, conditions...)
	for _, p := range r.bindings {
		p.Status.ObservedGeneration = 1
		p.Status.Conditions = condition.MergeConditions(nil, plan.PolicyBindingConditionTypes(), 1, now, plan.PolicyBindingConditions(o, p)...)
	}
}

// tuples are all that follows.
func (r *restartedService) tuples(o *iam.DeclaredObjects) (keys []*openfgav1.TupleKey) {
	objects := []string{iam.RoleObject(r.role)}
	for target := range r.on {
		objects = append(objects, target, iam.GrantObject(r.role, target))
	}
	for _, object := range objects {
		for _, t := range o.DesiredTuples(object) {
			keys = append(keys, &openfgav1.TupleKey{User: t.User, Relation: t.Relation, Object: t.Object})
		}
	}
	return keys
}

// settled is longer than for how long what was published is looked at twice by who begins.
const settled = 190 * time.Second

// awaitReconciled waits until a service has looked at all that there is, and tells by how many reconciliations.
func awaitReconciled(b testing.TB, r *testenv.RunningService, objects float64) (passes float64) {
	b.Helper()
	until(b, 50*time.Millisecond, func() bool {
		passes = r.MetricValue(b, `entail_reconciliations_total{outcome="unchanged",service="tuple-sync"}`)
		return passes > objects && r.MetricValue(b, `entail_keys_waiting{service="tuple-sync"}`) == 0
	})
	return passes
}

// put hands all objects on.
func (r *restartedService) put(put func(kinds.Kind, metav1.Object)) {
	put(kinds.IAMRoles(), r.role)
	put(kinds.Organizations(), r.org)
	for _, u := range r.users {
		put(kinds.IAMUsers(), u)
	}
	for _, p := range r.projects {
		put(kinds.Projects(), p)
	}
	for _, p := range r.bindings {
		put(kinds.PolicyBindings(), p)
	}
}

// base hands on the objects that the API server has.
func (b *iamTestEnv) base(put func(kinds.Kind, metav1.Object)) {
	b.T.Helper()
	for _, s := range listed[corev1alpha1.Store](b, kinds.Stores()) {
		put(kinds.Stores(), s)
	}
	for _, p := range listed[iamv1alpha1.ProtectedResource](b, kinds.ProtectedResources()) {
		put(kinds.ProtectedResources(), p)
	}
}

// A restart with 100,000 bindings that are in step, until that is known of each, and what of memory is then in use. The bindings
// are on the bus alone, so that it would not do if it asked the API server about one, and all would be taken away.
func BenchmarkIAMRestart(b *testing.B) {
	const bindings, projects, users = 100_000, 1000, 10_000
	bed, r := newIAMTestEnv(b), newRestartedService(bindings, projects, users)
	o := r.objects(listed[iamv1alpha1.ProtectedResource](bed, kinds.ProtectedResources()))
	r.say(o)
	of := append(kinds.IAMKinds(), kinds.Stores(), kinds.AuthorizationModels(), kinds.AccountInfos())
	bed.PublishObjects(of, bed.base)
	said := bed.serve() // Says what is to be said of them.
	awaitReconciled(b, said, 0)
	bed.AwaitNoCalls()
	said.Stop()
	all := r.tuples(o)
	if err := bed.hand.Write(b.Context(), bed.id, "", all, nil); err != nil {
		b.Fatal(err)
	}
	bed.PublishObjects(of, func(put func(kinds.Kind, metav1.Object)) { bed.base(put); r.put(put) })
	published := time.Now()
	first := bed.serve() // Takes what is on the bus off it: a restart finds nothing there.
	awaitReconciled(b, first, bindings)
	first.Stop()
	until(b, time.Second, func() bool { return time.Since(published) > settled })
	before := inUse()
	calls, writes := bed.Kube.CallsByOp(), bed.OpenFGA.Writes()
	var start time.Duration
	for b.Loop() {
		begun := time.Now()
		running := bed.serve()
		passes := awaitReconciled(b, running, bindings)
		start += time.Since(begun)
		b.ReportMetric(passes/(bindings+projects+users), "passes/object")
		b.ReportMetric(float64(inUse()-before)/bindings, "B/binding")
		running.Stop()
	}
	b.ReportMetric(start.Seconds()/float64(b.N), "s/start")
	if asked, n := bed.asked(calls), len(bed.held(bed.id)); len(asked) > 0 || bed.OpenFGA.Writes() != writes || n != len(all) {
		b.Errorf("%d of %d tuples after %d writes, and the API server was asked %v", n, len(all), bed.OpenFGA.Writes()-writes, asked)
	}
}

// inUse is what is in use.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
