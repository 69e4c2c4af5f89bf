package mirror

import (
	"cmp"
	"context"
	"encoding/json"
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
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

const (
	ns      = "default"
	cluster = "local"
	docType = "a.example/Doc"
	getDoc  = "a.example/docs.get"
)

// bed is a mirror between an API server and an OpenFGA store, both in memory.
type bed struct {
	*Reconciler

	t       *testing.T
	openFGA *server
	// api are the objects, and notes the Events about them.
	api     map[event.Key]event.Change
	notes   []condition.Note
	version int
	// dirty are the keys that are asked for, with their priorities, and done those that had their turn.
	dirty map[Key]int
	done  []Key
	model *plan.Model
	// metrics are the mirror's own.
	metrics *prometheus.Registry
}

// newBed has an IAM store, a model with documents, and the ProtectedResource for these.
func newBed(t *testing.T) *bed {
	t.Helper()
	b := &bed{t: t, openFGA: &server{}, api: map[event.Key]event.Change{}, dirty: map[Key]int{}, metrics: prometheus.NewRegistry()}
	log := slog.New(slog.DiscardHandler)
	v := view.New(view.Config{Log: log})
	store := b.keyOf(kinds.Stores(), "iam")
	b.Reconciler = New(Config{
		State: NewState(v, view.Register[corev1alpha1.Store](v, kinds.Stores(), nil), store, false), View: v,
		Confirmer: confirm.New(v, b, cluster, log, prometheus.NewRegistry()), Cluster: b, Status: controller.NewStatusWriter(b, v, log),
		OpenFGA: b.openFGA, Writer: b.openFGA, Models: b, Log: log, Metrics: b.metrics,
	})
	v.OnChange(func(k event.Key) { b.ask(b.Keys(k)...) })
	p := &iamv1alpha1.ProtectedResource{}
	p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions = "a.example", "Doc", "docs", []string{"get", "update"}
	m := &openfgav1.AuthorizationModel{Id: "M", SchemaVersion: "1.1", TypeDefinitions: iam.Register([]*iamv1alpha1.ProtectedResource{p}).Types()}
	for _, d := range m.GetTypeDefinitions() {
		d.Metadata.Module = ""
	}
	var err error
	if b.model, err = plan.NewModel(m); err != nil {
		t.Fatal(err)
	}
	b.put(kinds.ProtectedResources(), "docs", p)
	b.put(kinds.Stores(), "iam", &corev1alpha1.Store{Status: corev1alpha1.StoreStatus{StoreID: "store", AuthorizationModelID: "M"}})
	b.work()
	return b
}

func (b *bed) keyOf(kind kinds.Kind, name string) event.Key {
	k := event.Key{Cluster: cluster, GroupResource: kind.GroupResource, Name: name}
	if !kind.Global {
		k.Namespace = ns
	}
	return k
}

// ask has keys take their turn.
func (b *bed) ask(keys ...Key) {
	for _, k := range keys {
		b.dirty[k] = max(b.dirty[k], b.Priority(k))
	}
}

// put makes an object be there, or be so, and the bus tell of it. Its UID is its name's, and a version's if it is made anew.
func (b *bed) put(kind kinds.Kind, name string, object metav1.Object) event.Key {
	b.t.Helper()
	k := b.keyOf(kind, name)
	c, there := b.api[k]
	if !there {
		c = event.Change{Key: k, UID: fmt.Sprintf("%s-%d", name, b.version)}
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
func (b *bed) written(c event.Change, object any) event.Change {
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

func (b *bed) take(c event.Change) {
	b.t.Helper()
	if err := b.View.Apply(b.t.Context(), c); err != nil {
		b.t.Fatal(err)
	}
}

// drop removes an object.
func (b *bed) drop(kind kinds.Kind, name string) {
	b.t.Helper()
	c := b.api[b.keyOf(kind, name)]
	delete(b.api, c.Key)
	b.version++
	c.ResourceVersion, c.Deleted = strconv.Itoa(b.version), true
	b.take(c)
}

// next is the key whose turn it is.
func (b *bed) next() Key {
	return slices.SortedFunc(maps.Keys(b.dirty), func(x, y Key) int {
		return cmp.Or(cmp.Compare(b.dirty[y], b.dirty[x]), strings.Compare(x.String(), y.String()))
	})[0]
}

// work gives all keys their turns until none is left.
func (b *bed) work() {
	b.t.Helper()
	b.done = nil
	for turns := 0; len(b.dirty) > 0; turns++ {
		if turns > 5000 {
			b.t.Fatalf("it does not end: %v", b.dirty)
		}
		k := b.next()
		delete(b.dirty, k)
		b.done = append(b.done, k)
		if err := b.turn(k, false); err != nil {
			b.t.Fatalf("%s: %v", k, err)
		}
	}
}

func (b *bed) turn(k Key, resync bool) error {
	return b.Reconcile(b.t.Context(), Pass{
		Key: k, Resync: resync, Reporter: consume.NewPass(b.View, k, resync),
		Enqueue: func(priority int, keys ...Key) {
			for _, k := range keys {
				b.dirty[k] = max(b.dirty[k], priority)
			}
		},
	})
}

// Newest, RemoveFinalizer, ApplyStatus and Event are the API server's.
func (b *bed) Newest(_ context.Context, _ kinds.Kind, c event.Change) (event.Change, error) {
	now, there := b.api[c.Key]
	if !there {
		c.Deleted = true
		return c, nil
	}
	return now, nil
}

func (b *bed) RemoveFinalizer(_ context.Context, _ kinds.Kind, c event.Change, _ string) (event.Change, error) {
	return b.api[c.Key], nil
}

func (b *bed) ApplyStatus(_ context.Context, _ kinds.Kind, c event.Change, status any) (event.Change, error) {
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

func (b *bed) Event(_ context.Context, _ event.Change, note condition.Note) error {
	b.notes = append(b.notes, note)
	return nil
}

// Get finds the one model.
func (b *bed) Get(context.Context, string, string) (*plan.Model, error) { return b.model, nil }

// Write writes to the store, and refuses what it is to.
func (s *server) Write(_ context.Context, w tuple.Write) (map[tuple.Tuple]error, error) {
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
	return refused, nil
}

// change is a write of somebody.
func (s *server) change(t tuple.Tuple, written bool) {
	s.commit(time.Unix(1e9+int64(len(s.list)), 0), &openfgav1.TupleKey{Object: t.Object, Relation: t.Relation, User: t.User}, written)
}

func (s *server) GetStore(context.Context, string) (fga.Store, bool, error) {
	return fga.Store{}, !s.gone, nil
}

// holds are all tuples, in order.
func (s *server) holds() []string {
	var all []string
	for _, t := range s.tuples {
		all = append(all, t.GetKey().GetObject()+"#"+t.GetKey().GetRelation()+"@"+t.GetKey().GetUser())
	}
	slices.Sort(all)
	return all
}

// peopled declares that alice, who is of the staff, and bob may get all documents.
func (b *bed) peopled() {
	b.t.Helper()
	b.put(kinds.Users(), "alice", &iamv1alpha1.User{})
	b.put(kinds.Users(), "bob", &iamv1alpha1.User{})
	b.put(kinds.Groups(), "staff", &iamv1alpha1.Group{})
	b.join("alice-staff", "alice", "staff")
	b.put(kinds.IAMRoles(), "viewer", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{getDoc}}})
	b.bind("staff", "viewer", b.subject(kinds.Groups(), "staff"))
	b.bind("bob", "viewer", b.subject(kinds.Users(), "bob"))
	b.work()
}

func (b *bed) join(name, user, group string) {
	b.t.Helper()
	m := &iamv1alpha1.GroupMembership{}
	m.Spec.UserRef.Name, m.Spec.GroupRef.Name, m.Spec.GroupRef.Namespace = user, group, ns
	b.put(kinds.GroupMemberships(), name, m)
}

func (b *bed) subject(kind kinds.Kind, name string) iamv1alpha1.Subject {
	k := b.keyOf(kind, name)
	return iamv1alpha1.Subject{Kind: kind.Kind, Namespace: k.Namespace, Name: name, UID: b.api[k].UID}
}

// bind gives subjects a role on all documents.
func (b *bed) bind(name, role string, subjects ...iamv1alpha1.Subject) {
	b.t.Helper()
	p := &iamv1alpha1.PolicyBinding{Spec: iamv1alpha1.PolicyBindingSpec{RoleRef: iamv1alpha1.RoleReference{Name: role}, Subjects: subjects}}
	p.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: "a.example", Kind: "Doc"}
	b.put(kinds.PolicyBindings(), name, p)
}

// follow looks at the store as the mirror does every second.
func (b *bed) follow() {
	b.t.Helper()
	b.ask(Key{sort: tail})
	b.work()
}
