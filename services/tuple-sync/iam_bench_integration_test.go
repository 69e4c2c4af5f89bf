//go:build integration

package tuplesync_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/topology"
)

// runConcurrently does something so often, by several at a time.
func runConcurrently(n int, do func(i int)) {
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
func until(b testing.TB, every time.Duration, done func() bool) {
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
func (b *iamTestEnv) held(id string) (keys []*openfgav1.TupleKey) {
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
func (b *iamTestEnv) written(id string) (count func() int) {
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

// reads counts the objects and lists of IAM that the service has read from the API server.
func (b *iamTestEnv) reads() (n int) {
	for op, calls := range b.Kube.CallsByOp() {
		if strings.HasPrefix(op, "GET /apis/iam.") || strings.HasPrefix(op, "GET /apis/resourcemanager.") {
			n += calls
		}
	}
	return n
}

// BenchmarkIAMBindings measures from the start of tuple-sync, with 10,000 PolicyBindings on the stream, until OpenFGA has
// all their tuples. It compares that with a loop of full calls, and counts reads of the API server.
func BenchmarkIAMBindings(b *testing.B) {
	const bindings, projects, users = 10_000, 1000, 100
	bed := newIAMTestEnv(b)
	bed.org("acme")
	bed.role("viewer", nil, getProject)
	people, targets := make([]metav1.ObjectMeta, users), make([]metav1.ObjectMeta, projects)
	runConcurrently(users, func(i int) { people[i] = bed.user(fmt.Sprint("user-", i)) })
	runConcurrently(projects, func(i int) { targets[i] = bed.project(fmt.Sprint("project-", i), "acme") })
	bed.StartReflector()
	first := bed.serve() // To whom a project belongs is recorded before anybody is bound.
	until(b, 100*time.Millisecond, func() bool { return len(bed.held(bed.id)) >= projects })
	first.Stop()
	runConcurrently(bindings, func(i int) {
		project := i % projects
		bed.bind(fmt.Sprint("binding-", i), "viewer", on(projectType, targets[project]), user(people[i/projects*10+project%10]))
	})
	until(b, time.Second, func() bool {
		stream, err := bed.JS.Stream(b.Context(), topology.Changes)
		return err == nil && stream.CachedInfo().State.Msgs >= bindings+projects+users
	})
	const want = bindings + 3*projects + 1 // Subjects; of each project its grant, the grant's role, and the parent; the role's permission.
	var services, loop, rest time.Duration
	reads, left := 0, 0 // Of the tuples, left remain when a tenth is written.
	for b.Loop() {
		if held := bed.held(bed.id); len(held) > 0 {
			if err := bed.hand.Write(b.Context(), bed.id, "", nil, held); err != nil {
				b.Fatal(err)
			}
		}
		written := bed.written(bed.id)
		begun, read := time.Now(), bed.reads()
		r := bed.serve()
		n := 0
		until(b, 20*time.Millisecond, func() bool { n = written(); return n >= want/10 })
		tenth := time.Now()
		left += want - n
		until(b, 20*time.Millisecond, func() bool { return written() == want })
		services, rest = services+time.Since(begun), rest+time.Since(tenth)
		r.Stop()
		reads += bed.reads() - read
		all := bed.held(bed.id)
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
	b.ReportMetric(float64(reads)/float64(bindings*b.N), "reads/binding")
	b.ReportMetric(loop.Seconds()/services.Seconds(), "of-a-loop")
	b.ReportMetric(float64(left)/rest.Seconds()*loop.Seconds()/(want*float64(b.N)), "of-a-loop-after-a-tenth")
}

// A subject more: from the answer to who applies the binding until OpenFGA has the tuple.
func BenchmarkIAMChange(b *testing.B) {
	const rounds = 200
	bed := newIAMTestEnv(b)
	bed.StartReflector()
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
				return slices.ContainsFunc(bed.held(bed.id), func(t *openfgav1.TupleKey) bool { return t.GetUser() == iam.UserSubject("bob") }) == there
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
	bed := newIAMTestEnv(b)
	bed.role("base", nil, getProject, editProject)
	runConcurrently(heirs, func(i int) { bed.role(fmt.Sprint("heir-", i), []string{"base"}) })
	bed.StartReflector()
	bed.serve()
	holds := func(permissions int) func() bool {
		return func() bool { return len(bed.held(bed.id)) == permissions*(heirs+1) }
	}
	var took time.Duration
	for b.Loop() {
		bed.role("base", nil, getProject, editProject)
		until(b, 100*time.Millisecond, holds(2))
		bed.AwaitCaughtUp(topology.TupleSync)
		begun := time.Now()
		bed.role("base", nil, getProject)
		until(b, 20*time.Millisecond, holds(1))
		took += time.Since(begun)
	}
	b.ReportMetric(took.Seconds()/float64(b.N), "s/permission")
}
