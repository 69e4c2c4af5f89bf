package mirror

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

// interval is how often the changes that others make in the store are looked for.
const interval = time.Second

// Config of a [Reconciler]. All fields are required.
type Config struct {
	State     *State
	View      *view.View
	Confirmer *confirm.Confirmer
	Cluster   Cluster
	Status    *controller.StatusWriter
	OpenFGA   OpenFGA
	Writer    Writer
	Models    Models
	Log       *slog.Logger
	Metrics   prometheus.Registerer
}

// Cluster is what is needed of the API server beside statuses.
type Cluster interface {
	Newest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error)
	RemoveFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error)
	// Epoch is the cluster's UID.
	Epoch(ctx context.Context) (string, error)
}

// OpenFGA is what is needed of the server beside writing.
type OpenFGA interface {
	Reader
	GetStore(ctx context.Context, storeID string) (fga.Store, bool, error)
	// FindStores finds all of a name, the oldest first.
	FindStores(ctx context.Context, name string) ([]fga.Store, error)
	// Owners are the tuples in a store that say whose it is.
	Owners(ctx context.Context, storeID string) ([]iam.Tuple, error)
}

// Writer changes OpenFGA stores, and tells which additions the server refuses.
type Writer interface {
	Write(ctx context.Context, w tuple.Write) (refused map[tuple.Tuple]error, err error)
}

// Models finds authorization models; nil when a store has no such.
type Models interface {
	Get(ctx context.Context, storeID, modelID string) (*plan.Model, error)
}

// Reconciler keeps the tuples of IAM, one [Key] at a time.
type Reconciler struct {
	Config

	copy *mirrored
	// swept is what all objects were last asked for by, and loaded how often the store had been read by then with nothing to
	// compare it with. Only the pass of the tail uses them.
	swept  basis
	loaded int
	// asked is when all objects were asked for: whatever has not changed since has nothing to spread.
	asked atomic.Pointer[moment]
	// told is why nothing was in force when people were told last, and only the tail's, too.
	told condition.Condition
	// home is what is known of the store, and missed says that a pass did nothing for want of one that is ours.
	home   atomic.Pointer[home]
	missed atomic.Bool
	// emptied says that the IAM store ends, and held nothing when it was looked at last, or is not ours.
	emptied atomic.Bool
	// undeclared counts the tuples of others that were removed, refused tells that the store is not ours.
	undeclared prometheus.Counter
	refused    prometheus.Gauge
}

// New makes one.
func New(cfg Config) *Reconciler {
	r := &Reconciler{Config: cfg, copy: newMirrored(cfg.OpenFGA), undeclared: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "entail_undeclared_tuples_removed_total", Help: "Tuples of IAM's types that nobody declares, and that were removed from the IAM store.",
	}), refused: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "entail_iam_store_not_adopted", Help: "1 if the IAM store in OpenFGA is not known to be this cluster's, and is left alone.",
	})}
	cfg.State.mayHold = r.copy.mayHold
	cfg.Metrics.MustRegister(r.undeclared, r.refused)
	return r
}

// Pass is one reconciliation.
type Pass struct {
	Key      Key
	Resync   bool
	Reporter consume.Reporter
	// Enqueue asks for further keys.
	Enqueue func(priority int, keys ...Key)
}

// Keys lists what an object touches.
func (r *Reconciler) Keys(k event.Key) []Key {
	switch {
	case k == r.State.store:
		return []Key{{sort: tail}}
	case k.Cluster != r.State.store.Cluster || r.State.kind(k.GroupResource) == nil:
		return nil
	case k.Target && r.idle(k):
		r.State.spreading(k) // There is nothing to spread.
		return nil
	case k.GroupResource == kinds.ProtectedResources().GroupResource:
		return []Key{{sort: tail}, {sort: spread, owner: k}, {sort: status, owner: k}}
	}
	keys := []Key{{sort: spread, owner: k}}
	if !k.Target { // Of what is a target, others say what became of it.
		keys = append(keys, Key{sort: status, owner: k})
	}
	if records(k.GroupResource) {
		keys = append(keys, Key{sort: record, owner: k})
	}
	for _, object := range r.State.holders(k) {
		keys = append(keys, Key{sort: tuples, object: object})
	}
	return keys
}

// Priority is that of a key: of objects, whether they lose something.
func (r *Reconciler) Priority(k Key) int {
	switch k.sort {
	case tail: // Nothing is done before it is known whose the store is.
		return revokes
	case spread:
		if r.State.taking(k.owner) {
			return takes
		}
		return spreads
	case status:
		return statuses
	case back:
		return mayTake
	case whole, tuples, record, none:
	}
	return changes
}

// Reconcile makes what a key stands for be as it is declared.
func (r *Reconciler) Reconcile(ctx context.Context, p Pass) error {
	switch p.Key.sort {
	case tail:
		return r.tail(ctx, p)
	case back:
		return r.back(ctx, p)
	case whole:
		return r.whole(ctx)
	case spread:
		return r.spread(ctx, p)
	case tuples:
		return r.sync(ctx, p)
	case record:
		return r.record(ctx, p)
	case status:
		return r.status(ctx, p)
	case none:
	}
	return nil
}

// moment is when a snapshot was made: by what was declared, at least, and by what else all tuples depend on.
type moment struct {
	changes uint64
	of      basis
}

// snapshot is what a pass decides from: the store, its model, and the objects by these.
type snapshot struct {
	moment  moment
	of      basis
	model   *plan.Model
	objects *iam.Objects
	says    confirm.Statement
	store   event.Change
}

// snapshot is that of now, with a copy that is one of this store, and fresh.
func (r *Reconciler) snapshot(ctx context.Context) (*snapshot, error) {
	n, err := r.declared(ctx)
	if n == nil || err != nil {
		return nil, err
	}
	return n, r.copy.refresh(ctx, n.of.storeID)
}

// declared is what follows from objects, whatever the store holds; nil if the Store names no store
// or no model, or a store that is not known to be ours.
func (r *Reconciler) declared(ctx context.Context) (*snapshot, error) {
	changes := r.State.changes() // First: what is read later is as new, or newer.
	store, known := r.State.where()
	if !known || !r.homeOf(store).adopted {
		r.missed.Store(true) // All is looked at once there is one.
		return nil, nil      //nolint:nilnil // That there is none is an answer.
	}
	n := &snapshot{of: r.State.basis(store), says: storeSays(store), store: store.Change}
	n.moment = moment{changes, n.of}
	var err error
	if n.model, err = r.Models.Get(ctx, n.of.storeID, n.of.modelID); err != nil {
		return nil, err
	}
	if n.model == nil { // Not for long: what is to be done is not forgotten.
		return nil, fault.Unavailable(fmt.Errorf("model %s: %w", n.of.modelID, fga.ErrModelNotFound))
	}
	n.objects = r.State.objects(n.of, n.model)
	return n, nil
}

// wanted are the tuples that an object is to hold.
func (n *snapshot) wanted(object string) []iam.Tuple {
	if n.of.ends {
		return nil
	}
	return n.objects.Wanted(object)
}

// difference is what an object lacks, as far as the model knows it, and what it has too much.
func (r *Reconciler) difference(n *snapshot, object string, has edges) (add, remove []iam.Tuple) {
	wanted := map[edge]bool{}
	for _, t := range n.wanted(object) {
		e := edge{t.Relation, t.User}
		wanted[e] = true
		if _, ok := has[e]; !ok && r.copy.takes(t, n.of.modelID) && n.model.Validate(convert(t)) == nil {
			add = append(add, t)
		}
	}
	for e := range has {
		if !wanted[e] {
			remove = append(remove, iam.Tuple{User: e.user, Relation: e.relation, Object: object})
		}
	}
	return add, remove
}

func convert(t iam.Tuple) tuple.Tuple {
	return tuple.Tuple{ID: tuple.ID{Object: t.Object, Relation: t.Relation, User: t.User}}
}

func convertAll(tuples []iam.Tuple) []tuple.Tuple {
	all := make([]tuple.Tuple, len(tuples))
	for i, t := range tuples {
		all[i] = convert(t)
	}
	return all
}
