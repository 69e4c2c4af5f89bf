// Package declared keeps the tuples that Stores and AuthorizationModels declare in OpenFGA. Each object's status records
// the tuples that are there because of it. All records together are the ledger. It is needed because OpenFGA does not
// store which object a tuple belongs to.
//
// Package plan decides what to do. This package collects the owners, and executes the plan.
package declared

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

// interval is the time between two checks whether a Store can be deleted.
const interval = time.Second

// Config of a [Reconciler]. All fields are required.
type Config struct {
	State *State
	View  *informer.Informer
	// Home is the name of Cluster. Objects of other clusters are never written.
	Home    string
	Cluster APIServer
	Status  *setup.StatusWriter
	OpenFGA StoreReader
	Writer  TupleWriter
	Models  ModelCache
	Log     *slog.Logger
	// Replica is the name of this replica.
	Replica string
	// Now returns the time since the boot, except in tests.
	Now func() time.Duration
	// Settling bounds how long calls of the previous leader may still take effect.
	Settling time.Duration
	// Retention is the time for which removed tuples are recorded; zero records none.
	Retention time.Duration
	// Restored counts tuples that were removed again after a restore of OpenFGA.
	Restored func(tuples int)
}

// Reconciler keeps declared tuples in step, one [Key] at a time.
type Reconciler struct {
	state   *State
	models  ModelCache
	records *verifiedRecords
	applier *planApplier
	replica string
	home    string
	now     func() time.Duration
}

// New returns a reconciler without records.
func New(cfg Config) *Reconciler {
	r := newVerifiedRecords(cfg.Settling)
	return &Reconciler{state: cfg.State, models: cfg.Models, records: r, replica: cfg.Replica, home: cfg.Home, now: cfg.Now, applier: &planApplier{
		state: cfg.State, records: r, view: cfg.View, cluster: cfg.Cluster, status: cfg.Status,
		openFGA: cfg.OpenFGA, writer: cfg.Writer, models: cfg.Models, log: cfg.Log,
		retention: cfg.Retention, restored: cfg.Restored,
	}}
}

// AffectedKeys returns the keys that depend on an object.
func (r *Reconciler) AffectedKeys(object event.Key) []Key { return r.state.AffectedKeys(object) }

// Reconcile makes a store hold the tuples declared for it. It plans until nothing is left to do, because one object may
// wait for what the plan did for another, and no event follows.
func (r *Reconciler) Reconcile(ctx context.Context, to controller.UntypedRequest, key Key, resync bool) error {
	p := &passState{reporter: to, key: key, resync: resync, unwritable: map[string]error{}, confirmed: map[string]bool{}}
	return reconcile.RetryWhileStale(key, func() error {
		s, err := r.takeSnapshot(ctx, p)
		if err != nil {
			return err
		}
		decided := plan.DecideStore(s.input)
		if err := r.applier.applyPlan(ctx, p, s, decided); err != nil {
			return err
		}
		r.applier.reportOutcomes(p, s, decided)
		r.records.finishPass(key.StoreID, s.begun)
		if p.resync {
			r.records.markCompared(s.life)
		}
		if s.wait > 0 {
			p.reporter.RequeueAfter(s.wait)
			return nil
		}
		if slices.ContainsFunc(s.input.Owners, func(o plan.Owner) bool { return o.IsDeletionDeferred() }) {
			p.reporter.RequeueAfter(interval)
		}
		if decided.IsIdle() {
			if p.forbidden != nil {
				p.reporter.RequeueWithBackoff(p.forbidden)
			}
			return nil
		}
		p.resync = false
		return reconcile.ErrStale
	})
}

// takeSnapshot collects the input of a plan. It reads the store's tuples only at a resync, when a record may be wrong, or
// after a restore of OpenFGA.
func (r *Reconciler) takeSnapshot(ctx context.Context, p *passState) (*planSnapshot, error) {
	storeID := p.key.StoreID
	s := &planSnapshot{
		input:   plan.Input{StoreID: storeID, Writer: r.replica, Strays: r.records.unfinishedWrites(storeID)},
		objects: map[string]*ownerObject{}, begun: r.now(),
	}
	declared, thorough, first := false, p.resync, r.records.markFirstPass(storeID)
	objects := r.relatedObjects(p)
	modelID := modelIDOfStore(storeID, objects)
	s.life = storeID + "/" + modelID
	for _, o := range objects {
		switch {
		case o.Key.Cluster != r.home:
			p.unwritable[o.UID] = fmt.Errorf(
				"only the tuple-sync of cluster %q can record tuples of this object, and it does not serve this store", o.Key.Cluster)
		case o.unreadable != nil: // Its tuples are unknown.
			p.unwritable[o.UID] = o.unreadable
		}
		_, o.Unwritable = p.unwritable[o.UID]
		declared = declared || len(o.Declared) > 0
		thorough = r.records.keepOrSuspectRecord(storeID, &o, first, s.begun) || thorough
		s.wait = max(s.wait, o.Contested)
		owner := o.Owner
		if !o.IsStore && o.modelID > modelID {
			// The Store's change with the newer model has not arrived yet. Model IDs are ordered by time.
			owner.ModuleJudged, owner.ModuleLive = false, false
		}
		s.input.Owners = append(s.input.Owners, owner)
		s.objects[o.UID] = &o
		if o.IsStore && o.TargetStoreID == storeID {
			s.store = &o
		}
	}
	var err error
	if declared {
		if s.input.Model, err = r.models.Get(ctx, storeID, modelID); err != nil {
			return nil, err
		}
	}
	return s, r.readStoreIfNeeded(ctx, p, s, thorough)
}

// modelIDOfStore returns the model ID of a store, or "".
func modelIDOfStore(storeID string, objects []ownerObject) string {
	modelID := ""
	for _, o := range objects {
		if o.IsStore && o.TargetStoreID == storeID {
			modelID = cmp.Or(o.modelID, modelID)
		}
	}
	return modelID
}

// relatedObjects returns all objects related to the key of p. It watches them, so that a change of one enqueues the key even
// if the object is no longer related.
func (r *Reconciler) relatedObjects(p *passState) []ownerObject {
	objects := r.state.liveObjectsOfKey(p.key)
	for p.reporter.RequeueOnChange(watchedKeys(objects)...) {
		objects = r.state.liveObjectsOfKey(p.key)
	}
	if p.key.StoreID == "" {
		return objects
	}
	return append(objects, r.records.deletedObjectsWithTuples(r.state, p.key.StoreID, objects)...)
}

func watchedKeys(objects []ownerObject) []event.Key {
	keys := make([]event.Key, 0, len(objects))
	for _, o := range objects {
		keys = append(append(keys, o.Key), o.infos...)
	}
	return keys
}
