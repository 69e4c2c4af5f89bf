// Package store keeps the OpenFGA store of each Store in step. It exists as long as the Store does, and its latest
// model is the merge of all modules. Package plan makes the decisions; this package carries them out.
package store

import (
	"context"
	"errors"
	"log/slog"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/lru"

	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/setup"
	"github.com/entail-dev/entail/services/internal/verify"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// Reconciler brings OpenFGA and the statuses in step with the informer, one Store at a time.
type Reconciler struct {
	state     *State
	view      *informer.Informer
	merges    *MergeCache
	verifier  *verify.Verifier
	resources missingResourceLister
	applier   *actionApplier
	statuses  *statusWriter
}

// missingResourceLister finds the ProtectedResources that the informer lacks.
type missingResourceLister interface {
	// ListMissingResources lists the ProtectedResources at the API server. It returns the state in the informer of
	// those that are alive there and that a Store's model leaves out.
	ListMissingResources(ctx context.Context, store event.Key) ([]verify.ExpectedState, error)
}

// New returns a reconciler.
func New(parts *setup.ServiceParts, state *State, merges *MergeCache, verifier *verify.Verifier, protected missingResourceLister) *Reconciler {
	return &Reconciler{
		state: state, view: parts.View, merges: merges, verifier: verifier, resources: protected,
		applier: &actionApplier{kube: parts.Kube, fga: parts.OpenFGA, made: lru.New(maxMade), log: parts.Log},
		statuses: &statusWriter{
			cluster: state.Shared.Cluster, state: state.Shared, writer: parts.Status, verifier: verifier,
		},
	}
}

// maxActions bounds the actions of one pass. No correct pass needs as many.
const maxActions = 24

var errEndless = errors.New("the pass needs too many actions")

// Reconcile brings one Store in step, and plans again if objects change during the pass. It gets the members: the
// objects behind modules of the Store, in the state from which the modules were made.
func (r *Reconciler) Reconcile(ctx context.Context, p *controller.Request[event.Key], members []module.StatusTarget) error {
	var obs plan.Observed
	return reconcile.RetryWhileStale(p.Key, func() error { return r.runPlan(ctx, p, members, &obs) })
}

// WriteOutageStatuses reports in the status of a Store, and of the objects that refer to it, that OpenFGA does not answer. It
// skips objects that are in step. waiting are members that wait for the Store.
func (r *Reconciler) WriteOutageStatuses(ctx context.Context, key event.Key, why setup.Outage, waiting []module.StatusTarget) error {
	in := r.state.Snapshot(key, plan.Observed{})
	in.Now = metav1.Now().Rfc3339Copy()
	return r.statuses.writeOutageStatuses(ctx, controller.NewRequest(r.view, key, false), in, why, waiting)
}

// runPlan carries out the actions of package plan until nothing is left to do.
func (r *Reconciler) runPlan(ctx context.Context, p *controller.Request[event.Key], members []module.StatusTarget, obs *plan.Observed) error {
	in := r.takeSnapshot(p, *obs)
	if in.Store == nil && obs.Created != "" {
		return r.applier.deleteUnrecordedStore(ctx, in, *obs)
	}
	if id := invalidStoreID(in); id != "" {
		obs.Missing = id
	}
	for range maxActions {
		action := plan.NextAction(in, *obs)
		err := r.verifyAction(ctx, action, in, *obs)
		switch verb := action.Verb; {
		case err != nil:
		case verb == plan.Record:
			err = r.statuses.writeStoreStatus(ctx, p, in, *obs)
		case verb == plan.RecordLive:
			err = r.statuses.recordLiveTexts(ctx, p, in)
		case verb == plan.WriteStatus:
			err = r.statuses.writeStatuses(ctx, p, in, *obs, members)
		default:
			err = r.applier.applyAction(ctx, p, action, in, obs)
		}
		switch {
		case errors.Is(err, errLives):
			return nil // The event of that Store is on its way.
		case errors.Is(err, errForeign):
			r.applier.log.WarnContext(ctx, "an OpenFGA store is left alone: it may belong to another Store, or to other software",
				slog.String("store", in.Key.Name), slog.String("store_id", action.StoreID))
			obs.Foreign = append(obs.Foreign, action.StoreID)
		case errors.Is(err, kube.ErrNotFound):
			// The object is gone, or another has its name now. The event of that is on its way.
			return r.applier.deleteUnrecordedStore(ctx, in, *obs)
		case errors.Is(err, kube.ErrForbidden) && action.Verb.ChangesFinalizer() && in.Store != nil:
			obs.Forbidden = err
			return errors.Join(err, r.statuses.writeStoreStatus(ctx, p, in, *obs))
		case errors.Is(err, fga.ErrStoreNotFound):
			obs.Missing = action.StoreID
		case err != nil || action.Verb == plan.WriteStatus:
			return err
		case action.NeedsSnapshot():
			in = r.takeSnapshot(p, *obs)
		}
	}
	return errEndless
}

// takeSnapshot reads the whole basis of the decisions at one time, so that it is consistent.
func (r *Reconciler) takeSnapshot(p *controller.Request[event.Key], obs plan.Observed) plan.Input {
	in := r.state.Snapshot(p.Key, obs)
	in.Resync, in.Now, in.NameErr = p.Resync, metav1.Now().Rfc3339Copy(), fga.ValidateStoreName(p.Key.Name)
	if in.Store != nil && in.Store.DeletionTimestamp == nil {
		in.Merged, in.MergeErr = r.merges.Merge(in)
	}
	return in
}

// invalidStoreID returns the recorded id of the OpenFGA store if it has an invalid form, else "". A user wrote such an id,
// and it names no store.
func invalidStoreID(in plan.Input) string {
	if in.Store == nil || in.Store.Status.StoreID == "" {
		return ""
	}
	if request := (&openfgav1.GetStoreRequest{StoreId: in.Store.Status.StoreID}); request.Validate() != nil {
		return in.Store.Status.StoreID
	}
	return ""
}
