package storesync

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/api/equality"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
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
	// Modules and documents are judged by what was decided on, not by what the view has heard since.
	for _, m := range in.Modules {
		if m.Value.DeletionTimestamp == nil && m.Key.Cluster == s.cluster {
			if err := s.settleModule(ctx, in, m); err != nil {
				return err
			}
		}
	}
	for _, d := range in.Documents {
		if d.Value.DeletionTimestamp == nil && d.Key.Cluster == s.cluster {
			if err := s.settleDocument(ctx, in, d); err != nil {
				return err
			}
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
	is, err := s.kube.ApplyStatus(ctx, kinds.Stores(), about, status, false)
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

func (s *pass) settleModule(ctx context.Context, in plan.Input, m plan.Module) error {
	has, status := plan.OwnModuleStatus(m.Value.Status), plan.ModuleStatus(in, s.facts, m)
	outcome, message := plan.ModuleOutcome(status.Conditions)
	return s.conclude(ctx, conclusion{
		kind: kinds.AuthorizationModels(), about: m.Change, outcome: outcome, message: message,
		status: status, same: equality.Semantic.DeepEqual(has, status), notes: plan.ModuleNotes(has.Conditions, status.Conditions),
	})
}

func (s *pass) settleDocument(ctx context.Context, in plan.Input, d plan.Document) error {
	has, status := plan.OwnDocumentStatus(d.Value.Status), plan.DocumentStatus(in, s.facts, d)
	outcome, message := plan.DocumentOutcome(status.Conditions)
	return s.conclude(ctx, conclusion{
		kind: kinds.PolicyDocuments(), about: d.Change, outcome: outcome, message: message,
		status: status, same: equality.Semantic.DeepEqual(has, status), notes: plan.DocumentNotes(has.Conditions, status.Conditions),
	})
}

// conclusion is what became of one object that a Store's model is made from.
type conclusion struct {
	kind    kinds.Kind
	about   event.Change
	outcome eventv1.Outcome
	message string
	status  any
	// same means that the object has this status.
	same  bool
	notes []condition.Note
}

// conclude writes what the status of an object lacks, unless it vanished meanwhile, and reports.
func (s *pass) conclude(ctx context.Context, c conclusion) error {
	if c.same {
		s.report(c.about, c.outcome, c.message, 0)
		return nil
	}
	is, err := s.kube.ApplyStatus(ctx, c.kind, c.about, c.status, false)
	if errors.Is(err, kube.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	s.report(c.about, c.outcome, c.message, 1)
	s.tell(ctx, c.about, c.notes)
	return s.see(ctx, c.about, is)
}
