// Package store keeps the OpenFGA store of each Store in step: that it exists, that its latest
// model is the merge of all modules, and that it goes when the Store goes. Package plan decides.
package store

import (
	"context"
	"errors"
	"log/slog"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// Reconciler brings OpenFGA and the statuses to what the view holds, one Store at a time.
type Reconciler struct {
	state     *State
	view      *view.View
	merges    *MergeCache
	confirmer *confirm.Confirmer
	applier   *applier
	statuses  *statuses
}

// New makes one.
func New(parts *controller.Parts, state *State, merges *MergeCache, confirmer *confirm.Confirmer, log *slog.Logger) *Reconciler {
	return &Reconciler{
		state: state, view: parts.View, merges: merges, confirmer: confirmer,
		applier: &applier{kube: parts.Kube, fga: parts.OpenFGA, confirmer: confirmer, made: lru.New(maxMade), log: log},
		statuses: &statuses{
			cluster: state.Shared.Cluster, state: state.Shared, writer: parts.Status, confirmer: confirmer, announce: parts.Announcer.Announce,
		},
	}
}

// maxActions is more than any pass takes.
const maxActions = 24

var errEndless = errors.New("the pass does not come to an end")

// Reconcile brings one Store in step, and plans again when objects change under it. Members are
// the objects of providers behind modules of the Store, as they were when these were made.
func (r *Reconciler) Reconcile(ctx context.Context, p *consume.Pass[event.Key], members []module.Member) error {
	var obs plan.Observed
	return reconcile.Retry(p.Key, func() error { return r.try(ctx, p, members, &obs) })
}

// WriteOutage has a Store, and what refers to it, say that OpenFGA gives no answer, unless they are in step; with members
// that wait for it.
func (r *Reconciler) WriteOutage(ctx context.Context, key event.Key, why controller.Outage, waiting []module.Member) error {
	in := r.state.Snapshot(key, plan.Observed{})
	in.Now = metav1.Now().Rfc3339Copy()
	return r.statuses.writeOutage(ctx, consume.NewPass(r.view, key, false), in, why, waiting)
}

// try asks package plan what to do, and does it until there is nothing left.
func (r *Reconciler) try(ctx context.Context, p *consume.Pass[event.Key], members []module.Member, obs *plan.Observed) error {
	in := r.snapshot(p, *obs)
	if in.Store == nil && obs.Created != "" {
		return r.applier.discard(ctx, in, *obs)
	}
	if id := invalidID(in); id != "" {
		obs.Missing = id
	}
	for range maxActions {
		action := plan.Next(in, *obs)
		err := r.confirm(ctx, action, in, *obs)
		switch verb := action.Verb; {
		case err != nil:
		case verb == plan.Record:
			err = r.statuses.writeStore(ctx, p, in, *obs)
		case verb == plan.RecordLive:
			err = r.statuses.recordLive(ctx, p, in)
		case verb == plan.WriteStatus:
			err = r.statuses.writeStatuses(ctx, p, in, *obs, members)
		default:
			err = r.applier.apply(ctx, p, action, in, obs)
		}
		switch {
		case errors.Is(err, errLives):
			return nil // The event of that is on its way.
		case errors.Is(err, errForeign):
			r.applier.log.WarnContext(ctx, "an OpenFGA store is left alone: it may belong to another Store, or to other software",
				slog.String("store", in.Key.Name), slog.String("store_id", action.StoreID))
			obs.Foreign = append(obs.Foreign, action.StoreID)
		case errors.Is(err, kube.ErrNotFound):
			// Gone, or another of its name now: the event of that is on its way.
			return r.applier.discard(ctx, in, *obs)
		case errors.Is(err, kube.ErrForbidden) && action.Verb.Finalizes() && in.Store != nil:
			obs.Forbidden = err
			return errors.Join(err, r.statuses.writeStore(ctx, p, in, *obs))
		case errors.Is(err, fga.ErrStoreNotFound):
			obs.Missing = action.StoreID
		case err != nil || action.Verb == plan.WriteStatus:
			return err
		case action.Renews():
			in = r.snapshot(p, *obs)
		}
	}
	return errEndless
}

// snapshot takes all that is decided from at one time, so that it fits together.
func (r *Reconciler) snapshot(p *consume.Pass[event.Key], obs plan.Observed) plan.Input {
	in := r.state.Snapshot(p.Key, obs)
	in.Resync, in.Now, in.NameErr = p.Resync, metav1.Now().Rfc3339Copy(), fga.ValidateStoreName(p.Key.Name)
	if in.Store != nil && in.Store.DeletionTimestamp == nil {
		in.Merged, in.MergeErr = r.merges.Merge(in)
	}
	return in
}

// invalidID is what a person wrote in the place of the OpenFGA store's id, if that cannot be one: it names no store.
func invalidID(in plan.Input) string {
	if in.Store == nil || in.Store.Status.StoreID == "" {
		return ""
	}
	if request := (&openfgav1.GetStoreRequest{StoreId: in.Store.Status.StoreID}); request.Validate() != nil {
		return in.Store.Status.StoreID
	}
	return ""
}
