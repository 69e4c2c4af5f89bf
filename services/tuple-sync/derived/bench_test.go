package derived

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// bindMany declares so many bindings of one role on the projects of an organization, of which nothing is in the store yet.
func (b *reconcilerEnv) bindMany(bindings, projects, users int) {
	b.t.Helper()
	b.put(kinds.IAMRoles(), "viewer", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{getProject}}})
	b.put(kinds.Organizations(), "acme", &resourcemanagerv1alpha1.Organization{})
	for i := range users {
		b.put(kinds.IAMUsers(), fmt.Sprint("user-", i), &iamv1alpha1.User{})
	}
	for i := range projects {
		p := &resourcemanagerv1alpha1.Project{}
		p.Spec.OwnerRef.Kind, p.Spec.OwnerRef.Name = "Organization", "acme"
		b.put(kinds.Projects(), fmt.Sprint("project-", i), p)
	}
	b.drain()
	for i := range bindings {
		p := &iamv1alpha1.PolicyBinding{}
		p.Spec.RoleRef.Name = "viewer"
		p.Spec.Subjects = []iamv1alpha1.Subject{b.subject(kinds.IAMUsers(), fmt.Sprint("user-", i%users))}
		project := b.keyOf(kinds.Projects(), fmt.Sprint("project-", i%projects))
		p.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{
			APIGroup: project.Group, Kind: "Project", Name: project.Name, UID: b.api[project].UID,
		}
		b.put(kinds.PolicyBindings(), fmt.Sprint("binding-", i), p)
	}
}

// fill has the store and all statuses say what is declared.
func (b *reconcilerEnv) fill() {
	b.t.Helper()
	n, err := b.declaredSnapshot(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	objects := map[string]bool{}
	for k := range b.api {
		if b.State.tableOf(k.GroupResource) != nil {
			for _, object := range b.State.affectedOpenFGAObjects(k, alwaysHeld) {
				objects[object] = true
			}
		}
	}
	b.openFGA.tuples, b.openFGA.list = nil, nil
	for object := range objects {
		for _, t := range n.desiredTuples(object) {
			b.openFGA.tuples = append(b.openFGA.tuples, &openfgav1.Tuple{Key: &openfgav1.TupleKey{User: t.User, Relation: t.Relation, Object: t.Object}})
		}
	}
	b.copy.dropReplica()
	b.drain()
}

// drain gives all keys their turns, the more urgent first, and counts these.
func (b *reconcilerEnv) drain() (passes int) {
	b.t.Helper()
	for len(b.dirty) > 0 {
		asked := b.dirty
		b.dirty = map[Key]int{}
		for _, k := range slices.SortedFunc(maps.Keys(asked), func(x, y Key) int { return cmp.Compare(asked[y], asked[x]) }) {
			passes++
			if err := b.pass(k, false); err != nil {
				b.t.Fatalf("%s: %v", k, err)
			}
		}
	}
	return passes
}

// A restart with nothing to change: the informer's load and all passes, without the servers.
func BenchmarkStart(b *testing.B) {
	for _, bindings := range []int{20_000, 100_000} {
		b.Run(fmt.Sprint(bindings), func(b *testing.B) {
			bed := newReconcilerEnv(b)
			bed.bindMany(bindings, bindings/100, bindings/10)
			bed.fill()
			writes, version := len(bed.openFGA.writes), bed.version
			var loading, passing time.Duration
			passes := 0
			before := inUse()
			for b.Loop() {
				begun := time.Now()
				bed.open()
				loading += time.Since(begun)
				begun = time.Now()
				passes += bed.drain()
				passing += time.Since(begun)
			}
			if len(bed.openFGA.writes) != writes || bed.version != version {
				b.Fatalf("%d writes to the store, and %d statuses", len(bed.openFGA.writes)-writes, bed.version-version)
			}
			all := float64(b.N * bindings)
			held := inUse()
			b.ReportMetric(float64(int64(held)-int64(before))/float64(bindings), "B/binding")
			bed.copy.dropReplica()
			b.ReportMetric(float64(int64(held)-int64(inUse()))/float64(bindings), "B-copy/binding")
			runtime.KeepAlive(bed)
			b.ReportMetric(float64(loading.Nanoseconds())/all, "ns-view/binding")
			b.ReportMetric(float64(passing.Nanoseconds())/all, "ns-passes/binding")
			b.ReportMetric(float64(passes)/all, "passes/binding")
		})
	}
}

// inUse is what is in use.
func inUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
