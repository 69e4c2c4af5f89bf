package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/proto"
	"k8s.io/utils/lru"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/controller"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// actionApplier carries out actions. No other code in this package writes to OpenFGA.
type actionApplier struct {
	kube *kube.Client
	fga  *fga.Client
	// made holds the ids of the OpenFGA stores that this process created.
	made *lru.Cache
	log  *slog.Logger
}

// maxMade bounds the size of made.
const maxMade = 65536

// applyAction carries out one action, and adds the result to obs.
func (a *actionApplier) applyAction(ctx context.Context, p controller.UntypedRequest, action plan.Action, in plan.Input, obs *plan.Observed) error {
	switch action.Verb {
	case plan.FindStores, plan.GetStore, plan.LatestModel, plan.FindOwners:
		return a.observeOpenFGA(ctx, action, in, obs)
	case plan.CreateStore, plan.RenameStore, plan.WriteModel, plan.DeleteStore:
		return a.writeOpenFGA(ctx, p, action, in, obs)
	case plan.AddFinalizer:
		return a.addFinalizers(ctx, p, in)
	case plan.RemoveFinalizer:
		return a.removeFinalizer(ctx, p, in, obs)
	default:
		return fault.Terminal(fmt.Errorf("no such action: %q", action.Verb))
	}
}

// observeOpenFGA reads from OpenFGA.
func (a *actionApplier) observeOpenFGA(ctx context.Context, action plan.Action, in plan.Input, obs *plan.Observed) error {
	switch action.Verb {
	case plan.GetStore:
		store, found, err := a.fga.GetStore(ctx, action.StoreID)
		if err != nil {
			return err
		}
		if obs.Found = plan.OpenFGAStore(store); !found {
			obs.Missing, obs.Absent = action.StoreID, append(obs.Absent, action.StoreID)
		}
	case plan.LatestModel:
		latest, err := a.fga.ReadLatestModel(ctx, action.StoreID)
		if err != nil {
			return err
		}
		obs.LatestOf, obs.Latest = action.StoreID, latest
	case plan.FindOwners:
		owners, err := a.readIAMStoreOwners(ctx, in.Key.Name, action.StoreID)
		if err != nil {
			return err
		}
		obs.OwnersOf, obs.Owners = action.StoreID, owners
	default:
		stores, err := a.fga.FindStores(ctx, in.Key.Name)
		if err != nil {
			return err
		}
		obs.Listed, obs.Named = true, nil
		for _, found := range stores {
			obs.Named = append(obs.Named, plan.OpenFGAStore(found))
		}
	}
	return nil
}

// readIAMStoreOwners reads from the tuples in the IAM store to which cluster it belongs.
func (a *actionApplier) readIAMStoreOwners(ctx context.Context, name, storeID string) (found plan.IAMStoreOwnerTuples, err error) {
	cluster, err := a.kube.ClusterUID(ctx)
	if err != nil {
		return found, err
	}
	found.Owner = iam.StoreOwnerTuple(name, cluster)
	if found.Named, err = a.fga.ReadStoreOwnerTuples(ctx, storeID); err != nil || len(found.Named) > 0 {
		return found, err
	}
	for t, err := range a.fga.ReadTuples(ctx, storeID) {
		if k := t.GetKey(); err != nil || iam.IsIAMObject(k.GetObject()) {
			found.Granted = k.GetObject() + "#" + k.GetRelation() + "@" + k.GetUser()
			return found, err
		}
	}
	return found, nil
}

// writeOpenFGA changes OpenFGA. If OpenFGA refuses a model or a name, write records that in obs and returns no error.
func (a *actionApplier) writeOpenFGA(ctx context.Context, p controller.UntypedRequest, action plan.Action, in plan.Input, obs *plan.Observed) (err error) {
	switch action.Verb {
	case plan.CreateStore:
		if obs.Created, err = a.fga.CreateStore(ctx, in.Key.Name); err == nil {
			a.made.Add(obs.Created, nil)
		}
	case plan.RenameStore:
		if err = a.fga.RenameStore(ctx, action.StoreID, in.Key.Name); isRefusal(err) {
			obs.RenameErr = err
			return nil
		}
		obs.Renamed = err == nil
	case plan.WriteModel:
		id, writeErr := a.fga.WriteModel(ctx, action.StoreID, action.Model)
		switch {
		case errors.Is(writeErr, fga.ErrInvalidModel):
			obs.Refused = writeErr
			return nil
		case writeErr == nil:
			obs.LatestOf, obs.Latest, obs.Written = action.StoreID, proto.CloneOf(action.Model), true
			obs.Latest.Id = id
		}
		err = writeErr
	default:
		if err = a.fga.DeleteStore(ctx, action.StoreID); err == nil {
			obs.Deleted, obs.Absent = action.StoreID, append(obs.Absent, action.StoreID)
		}
	}
	if err != nil {
		return err
	}
	p.CountWrite(in.Change)
	a.log.InfoContext(ctx, "OpenFGA changed", slog.String("step", string(action.Verb)), slog.String("store", in.Key.Name),
		slog.String("store_id", cmp.Or(action.StoreID, obs.Created)), slog.String("model_id", obs.Latest.GetId()))
	return nil
}

// isRefusal reports whether OpenFGA refused a request, as opposed to an outage or a missing store.
func isRefusal(err error) bool {
	return err != nil && !fault.IsUnavailable(err) && !errors.Is(err, fga.ErrStoreNotFound)
}

// addFinalizers adds our finalizer to the Store, and tuple-sync's if the Store declares tuples. One call adds both.
func (a *actionApplier) addFinalizers(ctx context.Context, p controller.UntypedRequest, in plan.Input) error {
	seen, err := encodeStoreChange(in)
	if err != nil {
		return err
	}
	now, err := a.kube.AddFinalizers(ctx, kinds.Stores(), seen, plan.RequiredFinalizers(in.Store)...)
	if err != nil {
		return err
	}
	return p.RecordWrite(ctx, in.Change, now)
}

// removeFinalizer removes our finalizer.
func (a *actionApplier) removeFinalizer(ctx context.Context, p controller.UntypedRequest, in plan.Input, obs *plan.Observed) error {
	seen, err := encodeStoreChange(in)
	if err != nil {
		return err
	}
	now, err := a.kube.RemoveFinalizer(ctx, kinds.Stores(), seen, corev1alpha1.StoreFinalizer)
	if err != nil {
		return err
	}
	obs.Released = true
	return p.RecordWrite(ctx, in.Change, now)
}

// encodeStoreChange returns the change of the Store with its object, so that one call can change the finalizers.
func encodeStoreChange(in plan.Input) (seen event.Change, err error) {
	seen = in.Change
	if seen.Object, err = json.Marshal(in.Store); err != nil {
		return seen, fmt.Errorf("encoding %s: %w", seen.Key, err)
	}
	return seen, nil
}

// deleteUnrecordedStore deletes an OpenFGA store that was created for a Store which vanished before its status recorded it. No Store
// would own it.
func (a *actionApplier) deleteUnrecordedStore(ctx context.Context, in plan.Input, obs plan.Observed) error {
	if last := cmp.Or(in.Store, in.Gone); obs.Created == "" || last != nil && last.Status.StoreID == obs.Created {
		return nil
	}
	return a.fga.DeleteStore(ctx, obs.Created)
}
