package tuplesync

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// simulation runs the service with users, store-sync, and a stream that lags behind.
type simulation struct {
	*simulatedServers
	t   *rapid.T
	bus map[event.Key]event.Change
	*simulatedProcess
	crashed bool
	// overtaken means that another replica has taken over, and has still to look at everything again.
	overtaken bool
	ids       int
	trace     []string
}

// rounds times the number of checks that rapid makes are simulated.
const rounds = 10

func TestStoresConvergeInRandomHistories(t *testing.T) {
	for range rounds {
		rapid.Check(t, runSimulation)
	}
}

// runSimulation lets people, store-sync, a lagging bus, crashes and force do their worst, waits
// for quiet, and compares: the stores hold what the objects ask for and what others wrote,
// and another look at everything changes nothing.
func runSimulation(t *rapid.T) {
	s := &simulation{simulatedServers: newSimulatedServers(t), t: t, bus: map[event.Key]event.Change{}}
	s.simulatedProcess = start(s.simulatedServers, s.bus)
	s.fresh, s.tell = s.isFresh, s.logf
	s.foreign[tuple.ID{Object: "doc:9", Relation: "viewer", User: "user:foreign"}] = tuple.Tuple{}
	t.Repeat(map[string]func(*rapid.T){
		"create":    s.step("create", s.create),
		"edit":      s.step("edit", s.edit),
		"edit more": s.step("edit", s.edit),
		"delete":    s.step("delete", s.delete),
		"strip":     s.step("strip", s.strip),
		"refer":     s.step("refer", s.refer),
		"storesync": s.step("storesync", s.storeSync),
		"deliver":   s.step("deliver", s.deliver),
		"work":      s.step("work", s.work),
		"work more": s.step("work", s.work),
		"trouble":   s.step("trouble", s.trouble),
		"restart":   s.step("restart", s.restart),
		"restore":   s.step("restore", s.restoreOpenFGA),
		"":          func(*rapid.T) { s.fail() },
	})
	s.settleDown()
}

func (s *simulation) step(name string, do func()) func(*rapid.T) {
	return func(t *rapid.T) {
		s.t = t
		s.trace = append(s.trace, name)
		do()
	}
}

func (s *simulation) fail() {
	if s.broken != nil {
		s.t.Fatalf("%v\n%v", s.broken, s.trace)
	}
}

func (s *simulation) logf(format string, args ...any) {
	s.trace = append(s.trace, fmt.Sprintf("\n  "+format, args...))
}

// isFresh means that nothing has happened that the process does not know.
func (s *simulation) isFresh() bool {
	for k, c := range s.latest {
		held, ok := s.held(k)
		if !ok || held.ResourceVersion != c.ResourceVersion || held.Deleted != c.Deleted {
			return false
		}
	}
	return true
}

func (s *simulation) held(k event.Key) (event.Change, bool) {
	if o, _ := s.state.Stores.GetOrTombstone(k); o.UID != "" {
		return o.Change, true
	}
	o, _ := s.state.Models.GetOrTombstone(k)
	return o.Change, o.UID != ""
}

//nolint:gochecknoglobals // Fixtures that no test changes.
var (
	names = map[bool][]string{true: {"a", "b"}, false: {"x", "y", "z"}}
	pool  = []corev1alpha1.Tuple{
		{Object: "doc:1", Relation: "viewer", User: "user:1"},
		{Object: "doc:1", Relation: "viewer", User: "user:1", Condition: &corev1alpha1.TupleCondition{Name: "large", Context: &runtime.RawExtension{Raw: []byte(`{"size": 5}`)}}},
		{Object: "doc:1", Relation: "viewer", User: "user:2"},
		{Object: "doc:2", Relation: "viewer", User: "user:2"},
		{Object: "folder:1", Relation: "owner", User: "user:1"},
		{Object: "doc:2", Relation: "viewer", User: "nobody"},
	}
)

func (s *simulation) create() {
	store := rapid.Bool().Draw(s.t, "store")
	name := rapid.SampledFrom(names[store]).Draw(s.t, "name")
	kind := kinds.AuthorizationModels()
	if store {
		kind = kinds.Stores()
	}
	key := event.Key{Cluster: "local", GroupResource: kind.GroupResource, Name: name}
	_, exists := s.things[key]
	// Of an object deleted by force nothing remains once another has its name.
	if _, lost := s.lost[key]; exists || lost {
		return
	}
	a := s.newThing(kind, name)
	a.tuples = s.someTuples()
	if store {
		a.meta.Finalizers = []string{corev1alpha1.StoreFinalizer}
		s.assign(a)
	} else {
		a.ref = rapid.SampledFrom(names[true]).Draw(s.t, "ref")
	}
	s.logf("create %s of %s: %v", name, a.ref, a.tuples)
	s.changed(a)
}

func (s *simulation) someTuples() []corev1alpha1.Tuple {
	return rapid.SliceOfN(rapid.SampledFrom(pool), 0, 4).Draw(s.t, "tuples")
}

// assign is what store-sync does: an OpenFGA store and its model.
func (s *simulation) assign(a *simulatedObject) {
	if rapid.IntRange(0, 3).Draw(s.t, "new id") == 0 || a.status.StoreID == "" {
		s.ids++
		a.status.StoreID = fmt.Sprintf("S%d", s.ids)
		s.contents[a.status.StoreID] = maps.Clone(s.foreign)
	}
	a.status.AuthorizationModelID = rapid.SampledFrom([]string{"small", "big", "big"}).Draw(s.t, "model")
	a.set(metav1.Condition{
		Type: corev1alpha1.ModelSynced, Status: metav1.ConditionTrue, Reason: "Synced", ObservedGeneration: a.meta.Generation,
	})
}

func (s *simulation) pick() *simulatedObject {
	all := slices.SortedFunc(maps.Values(s.things), func(a, b *simulatedObject) int {
		return cmp.Compare(a.meta.UID, b.meta.UID)
	})
	if len(all) == 0 {
		return nil
	}
	return rapid.SampledFrom(all).Draw(s.t, "thing")
}

func (s *simulation) edit() {
	a := s.pick()
	if a == nil {
		return
	}
	a.tuples = s.someTuples()
	a.meta.Generation++
	s.logf("edit %s: %v", a.meta.UID, a.tuples)
	s.changed(a)
}

func (s *simulation) delete() {
	a := s.pick()
	if a == nil || a.meta.DeletionTimestamp != nil {
		return
	}
	now := metav1.NewTime(time.Unix(1, 0))
	a.meta.DeletionTimestamp = &now
	a.meta.Generation++
	s.logf("delete %s", a.meta.UID)
	s.changed(a)
}

// strip removes all finalizers by force.
func (s *simulation) strip() {
	a := s.pick()
	if a == nil || rapid.IntRange(0, 2).Draw(s.t, "really") > 0 {
		return
	}
	a.meta.Finalizers = nil
	s.logf("strip %s", a.meta.UID)
	s.changed(a)
}

func (s *simulation) refer() {
	a := s.pick()
	if a == nil || a.isStore() {
		return
	}
	a.ref = rapid.SampledFrom(append(slices.Clone(names[true]), "none")).Draw(s.t, "ref")
	a.meta.Generation++
	s.logf("refer %s to %s", a.meta.UID, a.ref)
	s.changed(a)
}

func (s *simulation) storeSync() {
	a := s.pick()
	if a == nil {
		return
	}
	if !a.isStore() {
		a.set(metav1.Condition{
			Type: corev1alpha1.Merged, Status: metav1.ConditionTrue, Reason: "Merged", ObservedGeneration: a.meta.Generation,
		})
		s.changed(a)
		return
	}
	if a.meta.DeletionTimestamp == nil {
		before := a.status.StoreID
		s.assign(a)
		s.logf("store-sync gives %s store %s and model %s", a.meta.UID, a.status.StoreID, a.status.AuthorizationModelID)
		s.changed(a)
		if before != a.status.StoreID {
			delete(s.contents, before)
		}
		return
	}
	if len(s.dependents(a)) == 0 && !slices.Contains(a.meta.Finalizers, corev1alpha1.TuplesFinalizer) {
		s.logf("store-sync lets %s go", a.meta.UID)
		delete(s.contents, a.status.StoreID)
		s.withoutFinalizer(a, corev1alpha1.StoreFinalizer)
	}
}

// deliver lets the bus and the process know the newest state of one object, or again what they know.
func (s *simulation) deliver() {
	if len(s.latest) == 0 {
		return
	}
	k := rapid.SampledFrom(s.sortedLatest()).Draw(s.t, "key")
	c := s.latest[k]
	if old, ok := s.bus[k]; ok && rapid.IntRange(0, 3).Draw(s.t, "stale") == 0 {
		c = old
	}
	s.bus[k] = c
	s.logf("deliver %s@%s", k.Name, c.ResourceVersion)
	s.receive(c)
}

func (s *simulation) sortedLatest() []event.Key {
	return slices.SortedFunc(maps.Keys(s.latest), func(a, b event.Key) int { return strings.Compare(a.SubjectTokens(), b.SubjectTokens()) })
}

// work reconciles one key, or what is left of it after a crash.
func (s *simulation) work() {
	if len(s.dirty) == 0 {
		return
	}
	s.pass(rapid.SampledFrom(s.sortedDirty()).Draw(s.t, "dirty"), rapid.IntRange(0, 9).Draw(s.t, "resync") == 0)
}

func (s *simulation) sortedDirty() []Key {
	return slices.SortedFunc(maps.Keys(s.dirty), func(a, b Key) int { return strings.Compare(a.String(), b.String()) })
}

func (s *simulation) pass(k Key, resync bool) {
	delete(s.dirty, k)
	s.logf("reconcile %s (resync %v)", k, resync)
	_, err := s.simulatedProcess.reconcile(k, resync)
	if err != nil {
		s.logf("→ %v", err)
		s.dirty[k] = true
	}
	if err != nil && !fault.IsUnavailable(err) && !errors.Is(err, errCrash) {
		s.t.Fatalf("reconcile %s: %v\n%v", k, err, s.trace)
	}
	if s.crashed {
		s.disturb = nil
		s.restart()
	}
	s.fail()
}

// trouble lets the next work fail at some call, die there, or be overtaken.
func (s *simulation) trouble() {
	countdown := rapid.IntRange(0, 12).Draw(s.t, "calls")
	var next *simulatedProcess
	what := rapid.SampledFrom([]string{"crash", "error", "overtake", "standby", "standby dies"}).Draw(s.t, "what")
	s.disturb = func(op string) error {
		if countdown--; countdown >= 0 && !s.crashed {
			return nil
		}
		if op == "read one" && what != "crash" && what != "error" {
			return nil // ReadTuple holds a lock that a standby would wait for.
		}
		switch what {
		case "crash":
			s.crashed = true
			s.logf("crash at %s", op)
			return fault.Unavailable(errCrash)
		case "error":
			s.disturb = nil
			s.logf("error at %s", op)
			return fault.Unavailable(errors.New("try again"))
		}
		s.disturb = nil
		s.edit()
		if what == "overtake" {
			return nil
		}
		next = s.standby()
		if what == "standby dies" { // After what it is about to do.
			s.disturb = func(string) error {
				if countdown++; countdown < 1 {
					return nil
				}
				return fault.Unavailable(errCrash)
			}
		}
		return nil
	}
	s.work()
	if s.disturb = nil; next != nil {
		s.simulatedProcess, s.overtaken = next, true
		s.fresh = s.isFresh
	}
}

// standby lets another replica take over, with all that there is to know, while the process is
// frozen at some call.
func (s *simulation) standby() *simulatedProcess {
	s.logf("frozen; another takes over")
	s.fresh = func() bool { return false }
	other := start(s.simulatedServers, s.latest)
	for range 20 {
		for _, k := range slices.SortedFunc(maps.Keys(other.dirty), func(a, b Key) int { return strings.Compare(a.String(), b.String()) }) {
			delete(other.dirty, k)
			if _, err := other.reconcile(k, false); err != nil {
				other.dirty[k] = true
			}
		}
	}
	s.logf("the frozen one goes on")
	return other
}

func (s *simulation) restart() {
	s.logf("restart")
	s.crashed = false
	s.simulatedProcess = start(s.simulatedServers, s.bus)
}

// restoreOpenFGA brings back tuples that were removed, while no process runs. A process starts when its informer has
// caught up.
func (s *simulation) restoreOpenFGA() {
	if n := len(s.deletions); n > 0 {
		s.restore(n - rapid.IntRange(1, min(n, 4)).Draw(s.t, "deletions"))
		maps.Copy(s.bus, s.latest)
		s.restart()
	}
}

// lately looks thoroughly at everything once the calls of who was overtaken are over, as the engine
// of consume does.
func (s *simulation) lately() {
	s.wait(s.simulatedServers)
	for _, k := range s.sortedLatest() {
		s.bus[k] = s.latest[k]
		s.receive(s.bus[k])
	}
	for _, k := range s.sortedDirty() {
		s.pass(k, true)
	}
}

// settleDown delivers everything and works until nothing is left, then resyncs.
func (s *simulation) settleDown() {
	if s.overtaken {
		s.lately()
	}
	for round := 0; ; round++ {
		if round > 50 {
			s.t.Fatalf("no end in sight: %v\n%v", s.dirty, s.trace)
		}
		s.trace = append(s.trace, "settle")
		for _, k := range s.sortedLatest() {
			c := s.latest[k]
			if s.bus[k].ResourceVersion != c.ResourceVersion || s.bus[k].Deleted != c.Deleted || round == 0 {
				s.bus[k] = c
				s.receive(c)
			}
		}
		if len(s.dirty)+len(s.waiting) == 0 {
			break
		}
		s.wait(s.simulatedServers)
		for len(s.dirty) > 0 {
			for _, k := range s.sortedDirty() {
				s.pass(k, false)
			}
		}
	}
	s.compare()
	writes := s.writes
	for _, k := range s.sortedLatest() {
		s.receive(s.bus[k])
	}
	for _, k := range s.sortedDirty() {
		s.pass(k, false)
		s.pass(k, true)
	}
	if s.writes != writes {
		s.t.Fatalf("%d writes although everything was in step\n%v", s.writes-writes, s.trace)
	}
	s.simulatedProcess = start(s.simulatedServers, s.bus)
	for _, k := range s.sortedDirty() {
		s.pass(k, true)
	}
	if s.writes != writes {
		s.t.Fatalf("%d writes after a restart although everything was in step\n%v", s.writes-writes, s.trace)
	}
}

func (s *simulation) compare() {
	for id, tuples := range s.contents {
		if !s.claimed(id) {
			continue
		}
		want := s.wanted(id)
		maps.Copy(want, s.foreign)
		for t, held := range tuples {
			if s.abandoned[id][t] {
				want[t] = held
			}
		}
		if !maps.Equal(tuples, want) {
			s.t.Fatalf("store %s holds\n%v\nand should hold\n%v\n%v", id, tuples, want, s.trace)
		}
	}
	for _, a := range s.things {
		if a.meta.DeletionTimestamp != nil && slices.Contains(a.meta.Finalizers, corev1alpha1.TuplesFinalizer) &&
			(!a.isStore() || len(s.dependents(a)) == 0) {
			s.t.Fatalf("%s is being deleted and still held\n%v", a.meta.UID, s.trace)
		}
	}
}
