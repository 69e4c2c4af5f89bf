package derived

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

const (
	ns      = "default"
	cluster = "local"

	docType     = "a.example/Doc"
	orgType     = "resourcemanager.miloapis.com/Organization"
	projectType = "resourcemanager.miloapis.com/Project"
	getDoc      = "a.example/docs.get"
	getProject  = "resourcemanager.miloapis.com/projects.get"
)

// reconcilerEnv is a reconciler between an API server and an OpenFGA store, both in memory.
type reconcilerEnv struct {
	*Reconciler

	t       testing.TB
	openFGA *simulatedOpenFGA
	// api are the objects, gone those of the past, and notes the Events about them.
	api, gone map[event.Key]event.Change
	notes     []condition.EventContent
	version   int
	// reads counts requests to the API server, by kind.
	reads map[event.GroupResource]int
	// dirty are the keys that are asked for, with their priorities, and done those that had their turn. routes are the keys
	// that objects had last.
	dirty  map[Key]int
	done   []Key
	routes map[event.Key][]Key
	model  *plan.Model
	// backwards reverses the order of keys of one priority.
	backwards bool
	// passing means that the reconciler is the writer.
	passing bool
	// fail is what becomes of a call that changes something.
	fail func() error
	// stuck is why no finalizer can be taken off, if there is a reason.
	stuck   error
	metrics *prometheus.Registry
}

// newReconcilerEnv has an IAM store, a model with documents in projects, and the ProtectedResources for these.
func newReconcilerEnv(t testing.TB) *reconcilerEnv {
	t.Helper()
	b := &reconcilerEnv{
		t: t, openFGA: &simulatedOpenFGA{}, api: map[event.Key]event.Change{}, gone: map[event.Key]event.Change{}, fail: func() error { return nil },
		reads: map[event.GroupResource]int{},
	}
	b.openFGA.fail = func() error { return b.fail() }
	b.open()
	b.register(registered())
	b.put(kinds.Stores(), "iam", &corev1alpha1.Store{Spec: adoptingStore(), Status: corev1alpha1.StoreStatus{StoreID: "store", AuthorizationModelID: "M"}})
	b.work()
	return b
}

// adoptingStore is a Store that takes the OpenFGA store over with all that is in it.
func adoptingStore() corev1alpha1.StoreSpec {
	return corev1alpha1.StoreSpec{Adoption: corev1alpha1.AdoptionAlways}
}

func protect(typ, plural string, parents ...string) *iamv1alpha1.ProtectedResource {
	p := &iamv1alpha1.ProtectedResource{}
	p.Spec.ServiceRef.Name, p.Spec.Kind, _ = strings.Cut(typ, "/")
	p.Spec.Plural, p.Spec.Permissions = plural, []string{"get", "update"}
	for _, parent := range parents {
		group, kind, _ := strings.Cut(parent, "/")
		p.Spec.ParentResources = append(p.Spec.ParentResources, iamv1alpha1.ParentResourceRef{APIGroup: group, Kind: kind})
	}
	return p
}

// open starts a reconciler without state, and passes all existing and deleted objects to it.
func (b *reconcilerEnv) open() {
	b.t.Helper()
	log := slog.New(slog.DiscardHandler)
	v := informer.New(informer.Config{Log: log})
	b.dirty, b.routes, b.metrics = map[Key]int{}, map[event.Key][]Key{}, prometheus.NewRegistry()
	b.Reconciler = New(Config{
		State: newState(v, b), View: v, Verifier: verify.New(v, b, cluster, log, prometheus.NewRegistry()),
		Cluster: b, Status: setup.NewStatusWriter(b, v, log),
		OpenFGA: b.openFGA, Writer: b.openFGA, Models: b, Log: log, Metrics: b.metrics,
	})
	v.OnChange(func(k event.Key) {
		now := b.AffectedKeys(k)
		b.ask(append(slices.Clone(now), b.routes[k]...)...)
		if !b.passing { // Of our own writes the bus tells late, with what comes next.
			b.routes[k] = now
		}
	})
	for _, c := range slices.Concat(slices.Collect(maps.Values(b.gone)), slices.Collect(maps.Values(b.api))) {
		b.take(c)
	}
}

func newState(v *informer.Informer, b *reconcilerEnv) *State {
	return NewState(v, informer.RegisterLister[corev1alpha1.Store](v, kinds.Stores(), nil), b.keyOf(kinds.Stores(), "iam"), false)
}

func (b *reconcilerEnv) keyOf(kind kinds.Kind, name string) event.Key {
	k := event.Key{Cluster: cluster, GroupResource: kind.GroupResource, Name: name}
	if !kind.ClusterScoped {
		k.Namespace = ns
	}
	return k
}

// ask has keys take their turn.
func (b *reconcilerEnv) ask(keys ...Key) {
	for _, k := range keys {
		b.enqueue(b.Priority(k), k)
	}
}

func (b *reconcilerEnv) enqueue(priority int, keys ...Key) {
	for _, k := range keys {
		if has, asked := b.dirty[k]; !asked || has < priority {
			b.dirty[k] = priority
		}
	}
}

// put makes an object be there, or be so, and the bus tell of it. Its UID is its name's, and a version's if it is made anew.
func (b *reconcilerEnv) put(kind kinds.Kind, name string, object metav1.Object) event.Key {
	b.t.Helper()
	k := b.keyOf(kind, name)
	c, there := b.api[k]
	if !there {
		c = event.Change{Key: k, Version: kind.Version, UID: fmt.Sprintf("%s-%d", name, b.version)}
	}
	c.Generation++
	object.SetName(k.Name)
	object.SetNamespace(k.Namespace)
	object.SetUID(types.UID(c.UID))
	object.SetGeneration(c.Generation)
	b.take(b.written(c, object))
	return k
}

// written is a new state of an object.
func (b *reconcilerEnv) written(c event.Change, object any) event.Change {
	b.t.Helper()
	var err error
	if c.Object, err = json.Marshal(object); err != nil {
		b.t.Fatal(err)
	}
	b.version++
	c.ResourceVersion, c.Epoch = strconv.Itoa(b.version), "e"
	b.api[c.Key] = c
	return c
}

func (b *reconcilerEnv) take(c event.Change) {
	b.t.Helper()
	if err := b.View.Apply(b.t.Context(), c); err != nil {
		b.t.Fatal(err)
	}
}

func (b *reconcilerEnv) drop(kind kinds.Kind, name string) {
	b.t.Helper()
	c := b.api[b.keyOf(kind, name)]
	if delete(b.api, c.Key); c.UID == "" {
		return
	}
	b.version++
	c.ResourceVersion, c.Deleted = strconv.Itoa(b.version), true
	b.gone[c.Key] = c
	b.take(c)
}

// next returns the next key.
func (b *reconcilerEnv) next() Key {
	return slices.SortedFunc(maps.Keys(b.dirty), func(x, y Key) int {
		names := strings.Compare(x.String(), y.String())
		if b.backwards {
			names = -names
		}
		return cmp.Or(cmp.Compare(b.dirty[y], b.dirty[x]), names)
	})[0]
}

// work reconciles all keys until none is left.
func (b *reconcilerEnv) work() {
	b.t.Helper()
	b.done = nil
	for len(b.dirty) > 0 {
		if len(b.done) > 20_000 {
			b.t.Fatalf("it does not end: %v", b.dirty)
		}
		b.turn()
	}
}

// turn gives the next key its turn. One that fails comes again, which only what is to fail may do.
func (b *reconcilerEnv) turn() {
	b.t.Helper()
	k := b.next()
	priority := b.dirty[k]
	delete(b.dirty, k)
	b.done = append(b.done, k)
	if err := b.pass(k, false); err != nil {
		if b.enqueue(priority, k); !fault.IsUnavailable(err) {
			b.t.Fatalf("%s: %v", k, err)
		}
	}
}

// try gives as many turns, though nothing may come of them.
func (b *reconcilerEnv) try(turns int) {
	b.t.Helper()
	for range turns {
		if len(b.dirty) > 0 {
			b.turn()
		}
	}
}

// errTrouble is the error of failing calls.
var errTrouble = fault.Unavailable(errors.New("no answer"))

func (b *reconcilerEnv) pass(k Key, resync bool) error {
	b.passing = true
	defer func() { b.passing = false }()
	return b.Reconcile(b.t.Context(), ReconcileRequest{
		Key: k, Resync: resync, Reporter: keyWatcher{controller.NewRequest(b.View, k, resync), b}, Enqueue: b.enqueue,
	})
}

// keyWatcher makes objects lead to a key.
type keyWatcher struct {
	*controller.Request[Key]

	bed *reconcilerEnv
}

func (w keyWatcher) RequeueOnChange(objects ...event.Key) bool {
	for _, k := range objects {
		w.bed.routes[k] = append(w.bed.routes[k], w.Key)
	}
	return false
}

// ReadNewest, RemoveFinalizer, Epoch, ApplyStatus and Event implement the API server.
func (b *reconcilerEnv) ReadNewest(_ context.Context, _ kinds.Kind, c event.Change) (event.Change, error) {
	b.reads[c.Key.GroupResource]++
	now, there := b.api[c.Key]
	if !there {
		c.Deleted = true
		return c, nil
	}
	return now, nil
}

func (b *reconcilerEnv) RemoveFinalizer(_ context.Context, _ kinds.Kind, c event.Change, finalizer string) (event.Change, error) {
	if b.stuck != nil {
		return c, b.stuck
	}
	o := map[string]any{}
	if err := b.api[c.Key].Decode(&o); err != nil {
		return c, err
	}
	m := o["metadata"].(map[string]any)
	held, _ := m["finalizers"].([]any)
	m["finalizers"] = slices.DeleteFunc(held, func(f any) bool { return f == finalizer })
	return b.written(b.api[c.Key], o), nil
}

func (b *reconcilerEnv) ClusterUID(context.Context) (string, error) { return "this", nil }

func (b *reconcilerEnv) ApplyStatus(_ context.Context, _ kinds.Kind, c event.Change, status any) (event.Change, error) {
	now, there := b.api[c.Key]
	switch {
	case !there || now.UID != c.UID:
		return c, kube.ErrNotFound
	case now.ResourceVersion != c.ResourceVersion:
		return c, kube.ErrConflict
	}
	if err := b.fail(); err != nil {
		return c, err
	}
	var object, fields map[string]any
	data, err := json.Marshal(status)
	if err == nil {
		err = json.Unmarshal(data, &fields)
	}
	if err == nil {
		err = b.api[c.Key].Decode(&object)
	}
	if err != nil {
		return c, err
	}
	is, _ := object["status"].(map[string]any)
	if is == nil {
		is = map[string]any{}
	}
	maps.Copy(is, fields)
	object["status"] = is
	return b.written(b.api[c.Key], object), nil
}

func (b *reconcilerEnv) RecordEvent(_ context.Context, _ event.Change, note condition.EventContent) error {
	b.notes = append(b.notes, note)
	return nil
}

// Get returns the one model.
func (b *reconcilerEnv) Get(context.Context, string, string) (*plan.Model, error) {
	return b.model, nil
}

// Write writes to the store, and refuses what it is to.
func (s *simulatedOpenFGA) Write(_ context.Context, w tuple.Write) (map[tuple.Tuple]error, error) {
	if err := s.fail(); err != nil {
		return nil, err
	}
	s.writes = append(s.writes, w)
	refused := map[tuple.Tuple]error{}
	for _, t := range w.Add {
		if s.refuse != nil && s.refuse(t) {
			refused[t] = fga.ErrInvalidTuple
		}
	}
	for _, t := range w.Add {
		if refused[t] == nil {
			s.change(t, true)
		}
	}
	for _, t := range w.Remove {
		s.change(t, false)
	}
	if err := s.fail(); err != nil {
		return nil, err // The caller cannot know that the write succeeded.
	}
	return refused, nil
}

// change is a write of somebody.
func (s *simulatedOpenFGA) change(t tuple.Tuple, written bool) {
	s.commit(time.Unix(1e9+int64(len(s.list)), 0), &openfgav1.TupleKey{Object: t.Object, Relation: t.Relation, User: t.User}, written)
}

// inStep wants the store to hold what is declared, and somebody to have something.
func (b *reconcilerEnv) inStep(when string) {
	b.t.Helper()
	if got, want := b.openFGA.holds(), b.wanted(); !slices.Equal(got, want) || len(got) == 0 {
		b.t.Errorf("%s the store holds\n%v\nwant\n%v", when, got, want)
	}
}

func (s *simulatedOpenFGA) GetStore(context.Context, string) (fga.Store, bool, error) {
	return fga.Store{}, !s.gone, nil
}

func (s *simulatedOpenFGA) FindStores(context.Context, string) ([]fga.Store, error) {
	if s.gone {
		return nil, nil
	}
	return []fga.Store{{ID: "store"}, {ID: "younger"}}, nil
}

// holds returns all tuples in order.
func (s *simulatedOpenFGA) holds() []string {
	var all []string
	for _, t := range s.tuples {
		all = append(all, t.GetKey().GetObject()+"#"+t.GetKey().GetRelation()+"@"+t.GetKey().GetUser())
	}
	slices.Sort(all)
	return all
}

// peopled declares that alice, who is of the staff, and bob may get all documents.
func (b *reconcilerEnv) peopled() {
	b.t.Helper()
	b.put(kinds.IAMUsers(), "alice", &iamv1alpha1.User{})
	b.put(kinds.IAMUsers(), "bob", &iamv1alpha1.User{})
	b.put(kinds.IAMGroups(), "staff", &iamv1alpha1.Group{})
	b.join("alice-staff", "alice", "staff")
	b.put(kinds.IAMRoles(), "viewer", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{getDoc}}})
	b.bind("staff", "viewer", b.subject(kinds.IAMGroups(), "staff"))
	b.bind("bob", "viewer", b.subject(kinds.IAMUsers(), "bob"))
	b.work()
}

func (b *reconcilerEnv) join(name, user, group string) {
	b.t.Helper()
	m := &iamv1alpha1.GroupMembership{}
	m.Spec.UserRef.Name, m.Spec.GroupRef.Name, m.Spec.GroupRef.Namespace = user, group, ns
	b.put(kinds.GroupMemberships(), name, m)
}

func (b *reconcilerEnv) subject(kind kinds.Kind, name string) iamv1alpha1.Subject {
	k := b.keyOf(kind, name)
	return iamv1alpha1.Subject{Kind: kind.Kind, Namespace: k.Namespace, Name: name, UID: b.api[k].UID}
}

// bind grants subjects a role on all documents.
func (b *reconcilerEnv) bind(name, role string, subjects ...iamv1alpha1.Subject) {
	b.t.Helper()
	p := &iamv1alpha1.PolicyBinding{Spec: iamv1alpha1.PolicyBindingSpec{RoleRef: iamv1alpha1.RoleReference{Name: role}, Subjects: subjects}}
	p.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: "a.example", Kind: "Doc"}
	b.put(kinds.PolicyBindings(), name, p)
}

// follow reads the store as the reconciler does every second.
func (b *reconcilerEnv) follow() {
	b.t.Helper()
	b.ask(Key{sort: tail})
	b.work()
}

// alwaysHeld reports that every object may hold tuples.
func alwaysHeld(string) bool { return true }

// wanted are all tuples, by what an informer says that was told of everything at once.
func (b *reconcilerEnv) wanted() []string {
	b.t.Helper()
	v := informer.New(informer.Config{Log: slog.New(slog.DiscardHandler)})
	s := newState(v, b)
	for _, c := range b.api {
		if err := v.Apply(b.t.Context(), c); err != nil {
			b.t.Fatal(err)
		}
	}
	store, _ := s.iamStore()
	objects, all := s.declaredLookup(s.currentInputIdentity(store), b.model), map[string]bool{}
	for k := range b.api {
		if s.tableOf(k.GroupResource) == nil {
			continue
		}
		for _, object := range s.affectedOpenFGAObjects(k, alwaysHeld) {
			for _, tuple := range objects.DesiredTuples(object) {
				all[fromIAMTuple(tuple).String()] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}
