//go:build integration

package tuplesync_test

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testbed"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/tuple-sync/mirror/plan"
)

// atOnce does something so often, by several at a time.
func atOnce(n int, do func(i int)) {
	var all sync.WaitGroup
	const workers = 16
	for w := range workers {
		all.Go(func() {
			for i := w; i < n; i += workers {
				do(i)
			}
		})
	}
	all.Wait()
}

// until waits, and asks often.
func until(b *testing.B, every time.Duration, done func() bool) {
	b.Helper()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-b.Context().Done():
			b.Fatal(b.Context().Err())
		}
	}
}

// held are all tuples of a store.
func (b *iamBed) held(id string) (keys []*openfgav1.TupleKey) {
	b.T.Helper()
	for t, err := range b.hand.ReadTuples(b.T.Context(), id) {
		if err != nil {
			b.T.Fatal(err)
		}
		keys = append(keys, t.GetKey())
	}
	return keys
}

// written counts the tuples of a store from now on, each read once, by its list of changes.
func (b *iamBed) written(id string) (count func() int) {
	b.T.Helper()
	token, n := "", len(b.held(id))
	read := func() (writes int) {
		for {
			page, next, err := b.hand.ReadChanges(b.T.Context(), id, token, time.Time{})
			if err != nil {
				b.T.Fatal(err)
			}
			if token = next; len(page) == 0 {
				return writes
			}
			for _, c := range page {
				if writes++; c.GetOperation() == openfgav1.TupleOperation_TUPLE_OPERATION_DELETE {
					writes -= 2
				}
			}
		}
	}
	n -= read()
	return func() int { n += read(); return n }
}

// listAll reads what the API server says of all objects of a kind, by pages.
func (b *iamBed) listAll(kind kinds.Kind) {
	b.T.Helper()
	for options := (metav1.ListOptions{Limit: 500}); ; {
		page, err := b.Resource(kind).List(b.T.Context(), options)
		if err != nil {
			b.T.Fatal(err)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			return
		}
	}
}

func uidOf(name string) types.UID { return types.UID("0a1b2c3d-0000-0000-0000-" + name) }

// 10,000 PolicyBindings are on the bus: how fast are all their tuples in OpenFGA, beside a loop of full calls, and beside one that
// has the API server say first what there is to give.
func BenchmarkIAMBindings(b *testing.B) {
	const bindings, projects, users = 10_000, 1000, 100
	bed := newIAMBed(b)
	bed.org("acme")
	bed.role("viewer", nil, getProject)
	people, targets := make([]metav1.ObjectMeta, users), make([]metav1.ObjectMeta, projects)
	atOnce(users, func(i int) { people[i] = bed.user(fmt.Sprint("user-", i)) })
	atOnce(projects, func(i int) { targets[i] = bed.project(fmt.Sprint("project-", i), "acme") })
	bed.Reflector()
	first := bed.serve() // To whom a project belongs is recorded before anybody is bound.
	until(b, 100*time.Millisecond, func() bool { return len(bed.held(bed.id)) >= projects })
	first.Stop()
	atOnce(bindings, func(i int) {
		project := i % projects
		bed.bind(fmt.Sprint("binding-", i), "viewer", on(projectType, targets[project]), user(people[i/projects*10+project%10]))
	})
	until(b, time.Second, func() bool {
		stream, err := bed.JS.Stream(b.Context(), topology.Changes)
		return err == nil && stream.CachedInfo().State.Msgs >= bindings+projects+users
	})
	const want = bindings + 3*projects + 1 // Subjects; of each project its grant, the grant's role, and the parent; the role's permission.
	var services, loop, asking time.Duration
	for b.Loop() {
		if held := bed.held(bed.id); len(held) > 0 {
			if err := bed.hand.Write(b.Context(), bed.id, "", nil, held); err != nil {
				b.Fatal(err)
			}
		}
		written := bed.written(bed.id)
		begun := time.Now()
		r := bed.serve()
		until(b, 20*time.Millisecond, func() bool { return written() == want })
		services += time.Since(begun)
		r.Stop()
		all := bed.held(bed.id)
		begun = time.Now()
		for _, kind := range []kinds.Kind{kinds.PolicyBindings(), kinds.Projects(), kinds.Users()} {
			bed.listAll(kind)
		}
		asking += time.Since(begun)
		begun = time.Now()
		id, err := bed.hand.CreateStore(b.Context(), "loop")
		if err != nil {
			b.Fatal(err)
		}
		model, err := bed.hand.WriteModel(b.Context(), id, bed.modelOf())
		if err != nil {
			b.Fatal(err)
		}
		for some := range slices.Chunk(all, fga.DefaultMaxTuples) {
			if err := bed.hand.Write(b.Context(), id, model, some, nil); err != nil {
				b.Fatal(err)
			}
		}
		loop += time.Since(begun)
		if err := bed.JS.DeleteConsumer(b.Context(), topology.Changes, topology.TupleSync); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(want*float64(b.N)/services.Seconds(), "tuples/s")
	b.ReportMetric(loop.Seconds()/services.Seconds(), "of-a-loop")
	b.ReportMetric((loop+asking).Seconds()/services.Seconds(), "of-a-loop-that-asks")
	b.ReportMetric(loop.Seconds()/(loop+asking).Seconds(), "loop-that-asks-of-a-loop")
}

// A subject more: from the answer to who applies the binding until OpenFGA has the tuple.
func BenchmarkIAMChange(b *testing.B) {
	const rounds = 200
	bed := newIAMBed(b)
	bed.Reflector()
	bed.serve()
	bed.role("viewer", nil, getProject)
	alice, bob := bed.user("alice"), bed.user("bob")
	web := bed.project("web", "acme")
	var took []time.Duration
	for b.Loop() {
		for i := range rounds {
			subjects, there := []iamv1alpha1.Subject{user(alice)}, i%2 == 0
			if there {
				subjects = append(subjects, user(bob))
			}
			bed.bind("one", "viewer", on(projectType, web), subjects...)
			begun := time.Now()
			until(b, time.Millisecond, func() bool {
				return slices.ContainsFunc(bed.held(bed.id), func(t *openfgav1.TupleKey) bool { return t.GetUser() == iam.User("bob") }) == there
			})
			took = append(took, time.Since(begun))
			bed.ready(kinds.PolicyBindings(), "one", bound)
		}
	}
	slices.Sort(took)
	for name, share := range map[string]int{"p50-ms": 50, "p99-ms": 99} {
		b.ReportMetric(float64(took[len(took)*share/100].Microseconds())/1000, name)
	}
}

// One role, which 1,000 others inherit, loses a permission: until it is gone from all of them.
func BenchmarkIAMInheritedRole(b *testing.B) {
	const heirs = 1000
	bed := newIAMBed(b)
	bed.role("base", nil, getProject, editProject)
	atOnce(heirs, func(i int) { bed.role(fmt.Sprint("heir-", i), []string{"base"}) })
	bed.Reflector()
	bed.serve()
	holds := func(permissions int) func() bool {
		return func() bool { return len(bed.held(bed.id)) == permissions*(heirs+1) }
	}
	var took time.Duration
	for b.Loop() {
		bed.role("base", nil, getProject, editProject)
		until(b, 100*time.Millisecond, holds(2))
		bed.CaughtUp(topology.TupleSync)
		begun := time.Now()
		bed.role("base", nil, getProject)
		until(b, 20*time.Millisecond, holds(1))
		took += time.Since(begun)
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s/permission")
}

// restarted are all objects of a start with bindings, with what was said of each, by what finds them.
type restarted struct {
	role     *iamv1alpha1.Role
	users    map[string]*iamv1alpha1.User
	projects map[string]*resourcemanagerv1alpha1.Project
	bindings []*iamv1alpha1.PolicyBinding
	// on and by are the bindings by target and by grant.
	on, by map[string][]*iamv1alpha1.PolicyBinding
}

func newRestarted(bindings, projects, users int) *restarted {
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: uidOf(name), Generation: 1}
	}
	r := &restarted{
		role: &iamv1alpha1.Role{ObjectMeta: meta(ns, "viewer")}, users: map[string]*iamv1alpha1.User{},
		projects: map[string]*resourcemanagerv1alpha1.Project{}, on: map[string][]*iamv1alpha1.PolicyBinding{}, by: map[string][]*iamv1alpha1.PolicyBinding{},
	}
	r.role.Spec.IncludedPermissions = []string{getProject}
	for i := range users {
		name := fmt.Sprint("user-", i)
		r.users[name] = &iamv1alpha1.User{ObjectMeta: meta("", name)}
	}
	for i := range projects {
		name := fmt.Sprint("project-", i)
		r.projects[name] = &resourcemanagerv1alpha1.Project{ObjectMeta: meta("", name)}
	}
	for i := range bindings {
		p := &iamv1alpha1.PolicyBinding{ObjectMeta: meta(ns, fmt.Sprint("binding-", i))}
		p.Spec.RoleRef.Name = "viewer"
		p.Spec.Subjects = []iamv1alpha1.Subject{user(r.users[fmt.Sprint("user-", i%users)].ObjectMeta)}
		p.Spec.ResourceSelector = on(projectType, r.projects[fmt.Sprint("project-", i%projects)].ObjectMeta)
		r.bindings = append(r.bindings, p)
		r.on[iam.TargetOf(p)] = append(r.on[iam.TargetOf(p)], p)
		r.by[iam.GrantIndex(p)] = append(r.by[iam.GrantIndex(p)], p)
	}
	return r
}

// objects are they as decisions see them.
func (r *restarted) objects(resources []*iamv1alpha1.ProtectedResource) *iam.Objects {
	return &iam.Objects{
		Registry: iam.Register(resources),
		Role:     func(string, string) *iamv1alpha1.Role { return r.role },
		RoleOf: func(object string) *iamv1alpha1.Role {
			return map[string]*iamv1alpha1.Role{iam.RoleObject(r.role): r.role}[object]
		},
		GroupOf: func(string) *iamv1alpha1.Group { return nil },
		User:    func(name string) *iamv1alpha1.User { return r.users[name] },
		Target: func(object string) (iam.Target, bool) {
			for _, p := range r.on[object] {
				return iam.TargetOfProject(r.projects[p.Spec.ResourceSelector.ResourceRef.Name])
			}
			return iam.Target{}, false
		},
		BindingsOn: func(target string) []*iamv1alpha1.PolicyBinding { return r.on[target] },
		BindingsBy: func(index string) []*iamv1alpha1.PolicyBinding { return r.by[index] },
	}
}

// say puts into all objects what was said of them.
func (r *restarted) say(o *iam.Objects) {
	now := metav1.Now().Rfc3339Copy()
	gives, conditions := plan.Role(o, r.role)
	r.role.Status.EffectivePermissions, r.role.Status.ObservedGeneration = gives, 1
	r.role.Status.Conditions = condition.Apply(nil, plan.RoleTypes(), 1, now, conditions...)
	for _, p := range r.bindings {
		p.Status.ObservedGeneration = 1
		p.Status.Conditions = condition.Apply(nil, plan.PolicyBindingTypes(), 1, now, plan.PolicyBinding(o, p)...)
	}
}

// tuples are all that follows.
func (r *restarted) tuples(o *iam.Objects) (keys []*openfgav1.TupleKey) {
	objects := []string{iam.RoleObject(r.role)}
	for target := range r.on {
		objects = append(objects, target, iam.Grant(r.role, target))
	}
	for _, object := range objects {
		for _, t := range o.Wanted(object) {
			keys = append(keys, &openfgav1.TupleKey{User: t.User, Relation: t.Relation, Object: t.Object})
		}
	}
	return keys
}

// settled is longer than for how long what was published is looked at twice by who begins.
const settled = 190 * time.Second

// looked waits until a service has looked at all that there is, and tells by how many reconciliations.
func looked(b *testing.B, r *testbed.Running, objects float64) (passes float64) {
	b.Helper()
	until(b, 50*time.Millisecond, func() bool {
		passes = r.Metric(b, `entail_reconciliations_total{outcome="unchanged",service="tuple-sync"}`)
		return passes > objects && r.Metric(b, `entail_keys_waiting{service="tuple-sync"}`) == 0
	})
	return passes
}

// A restart with 100,000 bindings that are in step, until that is known of each, and what of memory is then in use.
func BenchmarkIAMRestart(b *testing.B) {
	const bindings, projects, users = 100_000, 1000, 10_000
	bed, r := newIAMBed(b), newRestarted(bindings, projects, users)
	resources := listed[iamv1alpha1.ProtectedResource](bed, kinds.ProtectedResources())
	o := r.objects(resources)
	r.say(o)
	all := r.tuples(o)
	if err := bed.hand.Write(b.Context(), bed.id, "", all, nil); err != nil {
		b.Fatal(err)
	}
	of := append(kinds.IAM(), kinds.Stores(), kinds.AuthorizationModels(), kinds.AccountInfos())
	bed.Fill(of, func(put func(kinds.Kind, metav1.Object)) {
		for _, s := range listed[corev1alpha1.Store](bed, kinds.Stores()) {
			put(kinds.Stores(), s)
		}
		for _, p := range resources {
			put(kinds.ProtectedResources(), p)
		}
		put(kinds.IAMRoles(), r.role)
		for _, u := range r.users {
			put(kinds.Users(), u)
		}
		for _, p := range r.projects {
			put(kinds.Projects(), p)
		}
		for _, p := range r.bindings {
			put(kinds.PolicyBindings(), p)
		}
	})
	published := time.Now()
	first := bed.serve() // Takes what is on the bus off it: a restart finds nothing there.
	looked(b, first, bindings)
	first.Stop()
	until(b, time.Second, func() bool { return time.Since(published) > settled })
	before := inUse()
	var start time.Duration
	for b.Loop() {
		begun := time.Now()
		running := bed.serve()
		passes := looked(b, running, bindings)
		start += time.Since(begun)
		b.ReportMetric(passes/(bindings+projects+users), "passes/object")
		b.ReportMetric(float64(inUse()-before)/bindings, "B/binding")
		if n := len(bed.held(bed.id)); n != len(all) {
			b.Fatalf("%d tuples, want %d", n, len(all))
		}
		running.Stop()
	}
	b.ReportMetric(start.Seconds()/float64(b.N), "s/start")
}

// inUse is what is in use.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
