package storesync

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// pass is one conversation about one Store.
type pass struct {
	*reconciler
	key    event.Key
	resync bool
	// documents are what the pass began with.
	documents []plan.Document
	in        plan.Input
	facts     plan.Observed
	// released means that the Store is no longer held by us.
	released bool
	// writes counts calls that changed something on behalf of the Store.
	writes  int
	results []consume.Result
}

// begin starts the conversation. What is no id names no store; a person wrote it there.
func begin(r *reconciler, key event.Key, resync bool, documents []plan.Document) *pass {
	s := &pass{reconciler: r, key: key, resync: resync, documents: documents}
	if s.look(); s.in.Store != nil {
		id := s.in.Store.Status.StoreID
		if request := (&openfgav1.GetStoreRequest{StoreId: id}); id != "" && request.Validate() != nil {
			s.facts.Missing = id
		}
	}
	return s
}

// look takes the view's present word, all of it at once, so that what is decided next fits together.
func (s *pass) look() {
	s.in = s.input(s.key, s.facts)
	s.in.Resync, s.in.Documents = s.resync, s.documents
	s.in.Now = metav1.Now().Rfc3339Copy()
	s.in.NameErr = fga.ValidateStoreName(s.key.Name)
	if s.in.Store != nil && s.in.Store.DeletionTimestamp == nil {
		s.in.Merged, s.in.MergeErr = s.merges.of(s.in)
	}
}

// do carries out one step.
func (s *pass) do(ctx context.Context, a plan.Action) error {
	switch a.Verb {
	case plan.FindStores, plan.GetStore, plan.LatestModel:
		return s.ask(ctx, a)
	case plan.CreateStore, plan.RenameStore, plan.WriteModel, plan.DeleteStore:
		return s.change(ctx, a)
	case plan.AddFinalizer, plan.RemoveFinalizer:
		return s.hold(ctx, a.Verb == plan.AddFinalizer)
	case plan.Record:
		return s.writeStore(ctx, plan.StoreStatus(s.in, s.facts))
	case plan.WriteStatus:
		return s.settle(ctx)
	default:
		return fault.Terminal(fmt.Errorf("no such step: %q", a.Verb))
	}
}

// hold puts our finalizer on the Store, or takes it off. With the object at hand that is one call.
func (s *pass) hold(ctx context.Context, on bool) (err error) {
	c := s.in.Change
	if c.Object, err = json.Marshal(s.in.Store); err != nil {
		return fmt.Errorf("encoding %s: %w", c.Key, err)
	}
	edit := s.kube.RemoveFinalizer
	if on {
		edit = s.kube.AddFinalizer
	}
	is, err := edit(ctx, kinds.Stores(), c, corev1alpha1.StoreFinalizer)
	s.released = err == nil && !on
	return s.took(ctx, is, err)
}

// ask adds an answer of OpenFGA to the facts.
func (s *pass) ask(ctx context.Context, a plan.Action) error {
	switch a.Verb {
	case plan.GetStore:
		store, found, err := s.fga.GetStore(ctx, a.StoreID)
		if err != nil {
			return err
		}
		if s.facts.Found = plan.Store(store); !found {
			s.facts.Missing = a.StoreID
		}
	case plan.LatestModel:
		latest, err := s.fga.LatestModel(ctx, a.StoreID)
		if err != nil {
			return err
		}
		s.facts.LatestOf, s.facts.Latest = a.StoreID, latest
	default:
		stores, err := s.fga.FindStores(ctx, s.key.Name)
		if err != nil {
			return err
		}
		s.facts.Listed, s.facts.Named = true, nil
		for _, found := range stores {
			s.facts.Named = append(s.facts.Named, plan.Store(found))
		}
		s.look() // At the Stores that have these, too.
	}
	return nil
}

// change makes OpenFGA different. That it refuses a model or a name is a fact, not an error.
func (s *pass) change(ctx context.Context, a plan.Action) (err error) {
	switch a.Verb {
	case plan.CreateStore:
		s.facts.Created, err = s.fga.CreateStore(ctx, s.key.Name)
	case plan.RenameStore:
		if err = s.fga.RenameStore(ctx, a.StoreID, s.key.Name); refused(err) {
			s.facts.RenameErr = err
			return nil
		}
		s.facts.Renamed = err == nil
	case plan.WriteModel:
		if s.facts.Written, err = s.fga.WriteModel(ctx, a.StoreID, a.Model); errors.Is(err, fga.ErrInvalidModel) {
			s.facts.Refused = err
			return nil
		}
	default:
		if err = s.fga.DeleteStore(ctx, a.StoreID); err == nil {
			s.facts.Deleted = a.StoreID
		}
	}
	if err != nil {
		return err
	}
	s.writes++
	s.log.InfoContext(ctx, "OpenFGA changed", slog.String("step", string(a.Verb)), slog.String("store", s.key.Name),
		slog.String("store_id", cmp.Or(a.StoreID, s.facts.Created)), slog.String("model_id", s.facts.Written))
	return nil
}

// refused tells a refusal from an outage.
func refused(err error) bool {
	return err != nil && !fault.IsUnavailable(err) && !errors.Is(err, fga.ErrStoreNotFound)
}

// took receives the Store's new state, or why there is none, from the API server and looks at everything anew.
func (s *pass) took(ctx context.Context, is event.Change, err error) error {
	if err != nil {
		return err
	}
	if is.ResourceVersion != s.in.Change.ResourceVersion {
		s.writes++
	}
	err = s.see(ctx, s.in.Change, is)
	s.look()
	return err
}

// see takes a state that we made into the view. It came of the state before: so it
// answers the same observation, in the same trace.
func (r *reconciler) see(ctx context.Context, was, is event.Change) error {
	is.ObservedAt, is.Traceparent = was.ObservedAt, was.Traceparent
	return r.view.Apply(ctx, is)
}

// abandon ends a pass whose Store vanished under it. A store that could not be recorded
// would be nobody's.
func (s *pass) abandon(ctx context.Context) error {
	if id := s.facts.Created; id != "" && s.in.Store != nil && s.in.Store.Status.StoreID != id {
		return s.fga.DeleteStore(ctx, id)
	}
	return nil
}

func (s *pass) tell(ctx context.Context, about event.Change, notes []condition.Note) {
	for _, n := range notes {
		if err := s.kube.Event(ctx, about, n); err != nil {
			s.log.DebugContext(ctx, "event not recorded", slog.String("object", about.Key.String()), slog.Any("error", err))
		}
	}
}
