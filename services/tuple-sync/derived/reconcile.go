package derived

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// interval is the time between two runs of the tail, which reads the changes of others.
const interval = time.Second

// Config of a [Reconciler]. All fields are required.
type Config struct {
	State    *State
	View     *informer.Informer
	Verifier *verify.Verifier
	Cluster  APIServer
	Status   *setup.StatusWriter
	OpenFGA  OpenFGAReader
	Writer   TupleWriter
	Models   ModelReader
	Log      *slog.Logger
	Metrics  prometheus.Registerer
}

// APIServer holds the calls to the API server other than status writes.
type APIServer interface {
	ReadNewest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error)
	RemoveFinalizer(ctx context.Context, kind kinds.Kind, obj event.Change, finalizer string) (event.Change, error)
	// ClusterUID returns the UID of the cluster.
	ClusterUID(ctx context.Context) (string, error)
}

// OpenFGAReader holds the read calls to OpenFGA.
type OpenFGAReader interface {
	StoreReader
	GetStore(ctx context.Context, storeID string) (fga.Store, bool, error)
	// FindStores returns all stores of a name, the oldest first.
	FindStores(ctx context.Context, name string) ([]fga.Store, error)
	// ReadStoreOwnerTuples returns the tuples of a store that name its owner.
	ReadStoreOwnerTuples(ctx context.Context, storeID string) ([]iam.Tuple, error)
}

// TupleWriter changes OpenFGA stores, and returns the additions that the server refuses.
type TupleWriter interface {
	Write(ctx context.Context, w tuple.Write) (refused map[tuple.Tuple]error, err error)
}

// ModelReader returns authorization models. It returns nil if the store lacks the model.
type ModelReader interface {
	Get(ctx context.Context, storeID, modelID string) (*plan.Model, error)
}

// Reconciler keeps the tuples of IAM in step, one [Key] at a time.
type Reconciler struct {
	Config

	copy *tupleReplica
	// swept is the basis for which all objects were last enqueued. loaded is the number of resets of the copy at that
	// time. Only the tail uses them.
	swept  inputIdentity
	loaded int
	// asked is the moment when all objects were last enqueued. If nothing has changed since, spread has nothing to do.
	asked atomic.Pointer[inputVersion]
	// told is the obstacle for which statuses were last enqueued; only the tail uses it.
	told condition.Condition
	// home holds the last finding about the store. missed means that a pass did nothing, because no adopted store
	// exists.
	home   atomic.Pointer[storeState]
	missed atomic.Bool
	// emptied means that the IAM store ends and was empty at the last check, or that it is not ours.
	emptied atomic.Bool
	// undeclared counts removed tuples that others wrote. refused is 1 while the store is not ours.
	undeclared prometheus.Counter
	refused    prometheus.Gauge
}

// New returns a Reconciler, and registers its metrics.
func New(cfg Config) *Reconciler {
	r := &Reconciler{Config: cfg, copy: newReplica(cfg.OpenFGA), undeclared: prometheus.NewCounter(prometheus.CounterOpts{
		Name: "entail_undeclared_tuples_removed_total", Help: "Tuples of IAM's types that no object declares, and that tuple-sync removed from the IAM store.",
	}), refused: prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "entail_iam_store_not_adopted", Help: "1 if the IAM store in OpenFGA does not belong to this cluster, so that tuple-sync writes nothing in it.",
	})}
	cfg.Metrics.MustRegister(r.undeclared, r.refused)
	return r
}

// ReconcileRequest holds the arguments of one reconciliation.
type ReconcileRequest struct {
	Key      Key
	Resync   bool
	Reporter controller.UntypedRequest
	// Enqueue requests further keys.
	Enqueue func(priority int, keys ...Key)
}

// AffectedKeys returns the keys that depend on an object.
func (r *Reconciler) AffectedKeys(k event.Key) []Key {
	switch {
	case k == r.State.store:
		return []Key{{sort: tail}}
	case k.Cluster != r.State.store.Cluster || r.State.tableOf(k.GroupResource) == nil:
		return nil
	case k.Target && r.isUnusedTarget(k):
		r.State.clearRevoking(k) // There is nothing to spread.
		return nil
	case k.GroupResource == kinds.ProtectedResources().GroupResource:
		return []Key{{sort: tail}, {sort: spread, owner: k}, {sort: status, owner: k}}
	}
	keys := []Key{{sort: spread, owner: k}}
	if !k.Target { // A target has no status of ours.
		keys = append(keys, Key{sort: status, owner: k})
	}
	if isUIDRecordingKind(k.GroupResource) {
		keys = append(keys, Key{sort: record, owner: k})
	}
	for _, object := range r.State.affectedTupleHolders(k, r.copy.canHoldTuples) {
		keys = append(keys, Key{sort: tuples, object: object})
	}
	return keys
}

// Priority returns the priority of a key. Deletions and edits come before additions.
func (r *Reconciler) Priority(k Key) int {
	switch k.sort {
	case tail: // Every other key needs the owner of the store.
		return revokes
	case spread:
		if r.State.isMarkedRevoking(k.owner) {
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

// Reconcile does the work of one key.
func (r *Reconciler) Reconcile(ctx context.Context, p ReconcileRequest) error {
	switch p.Key.sort {
	case tail:
		return r.checkIAMStoreAndRequeue(ctx, p)
	case back:
		return r.rereadRecentChanges(ctx, p)
	case whole:
		return r.compareStoreWithReplica(ctx)
	case spread:
		return r.enqueueDependents(ctx, p)
	case tuples:
		return r.syncOpenFGAObject(ctx, p)
	case record:
		return r.recordUID(ctx, p)
	case status:
		return r.writeStatus(ctx, p)
	case none:
	}
	return nil
}

// inputVersion identifies the input of a decision: the version of the declared objects, at least, and the basis.
type inputVersion struct {
	changes uint64
	of      inputIdentity
}

// iamSnapshot is the input of a pass: the store, its model, and the declared objects under this model.
type iamSnapshot struct {
	moment  inputVersion
	of      inputIdentity
	model   *plan.Model
	objects *iam.DeclaredObjects
	store   event.Change
}

// snapshotWithFreshReplica returns the present snapshot, and makes sure that the copy is of this store and fresh.
func (r *Reconciler) snapshotWithFreshReplica(ctx context.Context) (*iamSnapshot, error) {
	n, err := r.declaredSnapshot(ctx)
	if n == nil || err != nil {
		return nil, err
	}
	return n, r.copy.refreshUnlessFresh(ctx, n.of.storeID)
}

// declaredSnapshot returns the present snapshot without reading the store. It returns nil if the Store names no store or no
// model, or the store is not adopted.
func (r *Reconciler) declaredSnapshot(ctx context.Context) (*iamSnapshot, error) {
	changes := r.State.changeCount() // Read first, so that later reads are at least as new.
	store, known := r.State.iamStore()
	if !known || !r.storeStateOf(store).adopted {
		r.missed.Store(true) // The tail enqueues everything once a store exists.
		return nil, nil      //nolint:nilnil // That there is none is an answer.
	}
	n := &iamSnapshot{of: r.State.currentInputIdentity(store), store: store.Change}
	n.moment = inputVersion{changes, n.of}
	var err error
	if n.model, err = r.Models.Get(ctx, n.of.storeID, n.of.modelID); err != nil {
		return nil, err
	}
	if n.model == nil { // store-sync writes another model soon; the key is retried.
		return nil, fault.Unavailable(fmt.Errorf("model %s: %w", n.of.modelID, fga.ErrModelNotFound))
	}
	n.objects = r.State.declaredLookup(n.of, n.model)
	return n, nil
}

// desiredTuples returns the tuples that an object must hold. It returns none if the store ends.
func (n *iamSnapshot) desiredTuples(object string) []iam.Tuple {
	if n.of.ends {
		return nil
	}
	return n.objects.DesiredTuples(object)
}

// tupleDifference returns the missing tuples that the model allows and OpenFGA has not refused, and the tuples to remove.
func (r *Reconciler) tupleDifference(n *iamSnapshot, object string, has objectTuples) (add, remove []iam.Tuple) {
	wanted := map[relationUser]bool{}
	for _, t := range n.desiredTuples(object) {
		e := relationUser{t.Relation, t.User}
		wanted[e] = true
		if _, ok := has[e]; !ok && r.copy.isAcceptableTuple(t, n.of.modelID) && n.model.ValidateTuple(fromIAMTuple(t)) == nil {
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

func fromIAMTuple(t iam.Tuple) tuple.Tuple {
	return tuple.Tuple{ID: tuple.ID{Object: t.Object, Relation: t.Relation, User: t.User}}
}

func fromIAMTuples(tuples []iam.Tuple) []tuple.Tuple {
	all := make([]tuple.Tuple, len(tuples))
	for i, t := range tuples {
		all[i] = fromIAMTuple(t)
	}
	return all
}
