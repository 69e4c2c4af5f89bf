// Package ledger keeps the tuples that Stores and AuthorizationModels declare in OpenFGA, and
// in each object's status a record of what is there on its behalf. All records together are the
// ledger: OpenFGA itself does not know on whose behalf a tuple is there.
//
// What to do is decided in package plan; this package finds out who wants what, and carries
// the plan out.
package ledger

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

// interval is how often it is looked whether a Store may go.
const interval = time.Second

// Config of a [Reconciler]. All fields are required.
type Config struct {
	State *State
	View  *view.View
	// Home is the name of Cluster. Objects of others are somebody else's to hold and to record.
	Home    string
	Cluster Cluster
	Status  *controller.StatusWriter
	OpenFGA Reader
	Writer  Writer
	Models  Models
	Log     *slog.Logger
	// Replica tells this one from others.
	Replica string
	// Now is [bootclock.Now] but in tests.
	Now func() time.Duration
	// Settling bounds how long calls of the replica before may still take effect.
	Settling time.Duration
	// Retention is how long removed tuples are recorded; zero if they are not.
	Retention time.Duration
	// Restored counts tuples that were removed again because they were restored.
	Restored func(tuples int)
}

// Reconciler keeps declared tuples, one [Key] at a time.
type Reconciler struct {
	state   *State
	models  Models
	records *records
	applier *applier
	replica string
	home    string
	now     func() time.Duration
}

// New makes one.
func New(cfg Config) *Reconciler {
	r := newRecords(cfg.Settling)
	return &Reconciler{state: cfg.State, models: cfg.Models, records: r, replica: cfg.Replica, home: cfg.Home, now: cfg.Now, applier: &applier{
		state: cfg.State, records: r, view: cfg.View, cluster: cfg.Cluster, status: cfg.Status,
		openFGA: cfg.OpenFGA, writer: cfg.Writer, models: cfg.Models, log: cfg.Log,
		retention: cfg.Retention, restored: cfg.Restored,
	}}
}

// Keys lists what an object touches.
func (r *Reconciler) Keys(object event.Key) []Key { return r.state.Keys(object) }

// Reconcile makes a store hold what is declared for it. It plans until nothing is left to do:
// what it did for one object may be what another waits for, and no event will tell it of that.
func (r *Reconciler) Reconcile(ctx context.Context, to consume.Reporter, key Key, resync bool) error {
	p := &pass{reporter: to, key: key, resync: resync, unwritable: map[string]error{}, confirmed: map[string]bool{}}
	return reconcile.Retry(key, func() error {
		s, err := r.snapshot(ctx, p)
		if err != nil {
			return err
		}
		decided := plan.Make(s.input)
		if err := r.applier.apply(ctx, p, s, decided); err != nil {
			return err
		}
		r.applier.report(p, s, decided)
		r.records.finish(key.StoreID, s.begun)
		if p.resync {
			r.records.noteCompared(s.life)
		}
		if s.wait > 0 {
			p.reporter.Again(s.wait)
			return nil
		}
		if slices.ContainsFunc(s.input.Owners, func(o plan.Owner) bool { return o.Lingers() }) {
			p.reporter.Again(interval)
		}
		if decided.Idle() {
			if p.forbidden != nil {
				p.reporter.Later(p.forbidden)
			}
			return nil
		}
		p.resync = false
		return reconcile.ErrStale
	})
}

// snapshot gathers all that has to do with the key of p. It reads the store's tuples only
// if it must: at a resync, or where a record may not be true.
func (r *Reconciler) snapshot(ctx context.Context, p *pass) (*snapshot, error) {
	storeID := p.key.StoreID
	s := &snapshot{input: plan.Input{StoreID: storeID, Writer: r.replica, Strays: r.records.strays(storeID)}, objects: map[string]*object{}, begun: r.now()}
	declared, thorough, first := false, p.resync, r.records.firstPass(storeID)
	objects := r.objects(p)
	modelID := modelOf(storeID, objects)
	s.life = storeID + "/" + modelID
	for _, o := range objects {
		switch {
		case o.Key.Cluster != r.home:
			p.unwritable[o.UID] = fmt.Errorf("tuples are recorded in the cluster of their object: no tuple-sync of cluster %q does that here", o.Key.Cluster)
		case o.unreadable != nil: // Whatever were done to its tuples would be a guess.
			p.unwritable[o.UID] = o.unreadable
		}
		_, o.Unwritable = p.unwritable[o.UID]
		declared = declared || len(o.Declared) > 0
		thorough = r.records.doubt(storeID, &o, first, s.begun) || thorough
		s.wait = max(s.wait, o.Contested)
		owner := o.Owner
		if !o.IsStore && o.modelID > modelID {
			// The bus has not told yet of the model that the module is part of. Their ids have an order.
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
	return s, r.readStore(ctx, p, s, thorough)
}

// modelOf is the model by which the tuples of a store are judged.
func modelOf(storeID string, objects []object) string {
	modelID := ""
	for _, o := range objects {
		if o.IsStore && o.TargetStoreID == storeID {
			modelID = cmp.Or(o.modelID, modelID)
		}
	}
	return modelID
}

// objects lists all that have to do with the key of p. Whichever of them changes will wake it,
// even if it has nothing to do with the key any more.
func (r *Reconciler) objects(p *pass) []object {
	objects := r.state.under(p.key)
	for p.reporter.Watch(watched(objects)...) {
		objects = r.state.under(p.key)
	}
	if p.key.StoreID == "" {
		return objects
	}
	return append(objects, r.records.orphans(r.state, p.key.StoreID, objects)...)
}

func watched(objects []object) []event.Key {
	keys := make([]event.Key, 0, len(objects))
	for _, o := range objects {
		keys = append(append(keys, o.Key), o.infos...)
	}
	return keys
}
