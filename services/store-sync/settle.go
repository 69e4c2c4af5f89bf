package storesync

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/store-sync/plan"
)

// settle writes what the statuses lack and says what became of each object: the Store
// first, because tuples wait for its model.
func (s *pass) settle(ctx context.Context) error {
	in := s.in
	switch {
	case s.released || in.Store == nil && in.Gone != nil:
		s.report(in.Change, eventv1.Outcome_OUTCOME_APPLIED, "", s.writes)
	case in.Store != nil:
		status := plan.StoreStatus(in, s.facts)
		if err := s.writeStore(ctx, status); err != nil {
			return err
		}
		outcome, message := plan.StoreOutcome(status.Conditions)
		s.report(in.Change, outcome, message, s.writes)
	}
	// The modules are judged by what was decided on, not by what the view has heard since.
	for _, m := range in.Modules {
		if m.Value.DeletionTimestamp != nil || m.Key.Cluster != s.cluster {
			continue
		}
		if err := s.settleModule(ctx, in, m); err != nil {
			return err
		}
	}
	return nil
}

func (s *pass) report(about event.Change, outcome eventv1.Outcome, message string, writes int) {
	s.results = append(s.results, consume.Result{Change: about, Outcome: outcome, Message: message, Writes: writes})
}

// writeStore announces a model that the status does not name yet, and then names it: a
// crash in between announces it again.
func (s *pass) writeStore(ctx context.Context, status corev1alpha1.StoreStatus) error {
	was, about := s.in.Store.Status, s.in.Change
	if id := status.AuthorizationModelID; id != "" && id != was.AuthorizationModelID {
		m := &eventv1.StoreChanged{StoreId: status.StoreID, AuthorizationModelId: id}
		if err := s.announce(ctx, m); err != nil {
			return err
		}
	}
	if equality.Semantic.DeepEqual(plan.OwnStoreStatus(was), status) {
		return nil
	}
	is, err := s.kube.ApplyStatus(ctx, topology.Stores(), about, status, false)
	if err := s.took(ctx, is, err); err != nil {
		return err
	}
	notes := plan.StoreNotes(was.Conditions, status.Conditions)
	if s.facts.Written != "" {
		notes = append(notes, plan.ModelWritten(s.facts.Written))
	}
	s.tell(ctx, about, notes)
	return nil
}

// settleModule writes what the status of one AuthorizationModel lacks, unless it vanished meanwhile.
func (s *pass) settleModule(ctx context.Context, in plan.Input, m plan.Module) error {
	status := plan.ModuleStatus(in, s.facts, m)
	outcome, message := plan.ModuleOutcome(status.Conditions)
	if equality.Semantic.DeepEqual(plan.OwnModuleStatus(m.Value.Status), status) {
		s.report(m.Change, outcome, message, 0)
		return nil
	}
	is, err := s.kube.ApplyStatus(ctx, topology.AuthorizationModels(), m.Change, status, false)
	if errors.Is(err, kube.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	s.report(m.Change, outcome, message, 1)
	s.tell(ctx, m.Change, plan.ModuleNotes(m.Value.Status.Conditions, status.Conditions))
	return s.see(ctx, m.Change, is)
}
