package query

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"

	"google.golang.org/protobuf/types/known/timestamppb"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/scene"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/topology"
)

// Lister reads a namespace from the API server itself.
type Lister interface {
	List(ctx context.Context, kind topology.Kind, namespace string) iter.Seq2[event.Change, error]
}

// GetSyncStatus implements InferenceService.
func (s *Server) GetSyncStatus(_ context.Context, r *inferencev1.GetSyncStatusRequest) (*inferencev1.GetSyncStatusResponse, error) {
	revision, err := s.ready()
	if err != nil {
		return nil, err
	}
	page, next, err := rpc.Page(s.in(r.GetNamespace()), func(namespace string) string { return namespace }, r.GetPageSize(), r.GetPageToken())
	if err != nil {
		return nil, err
	}
	response := &inferencev1.GetSyncStatusResponse{NextPageToken: next, Revision: revision, Synced: true}
	for _, namespace := range page {
		response.Namespaces = append(response.Namespaces, s.sync(namespace))
	}
	return response, nil
}

func (s *Server) sync(namespace string) *inferencev1.NamespaceSync {
	m := &inferencev1.NamespaceSync{Namespace: namespace}
	for _, rule := range s.rulesOf(namespace) {
		if m.Rules++; !rule.GetSynced() && len(m.GetNotSynced()) < maxListed {
			m.NotSynced = append(m.NotSynced, rule)
		}
	}
	book, _ := s.Scene.Rulebook(namespace)
	for _, source := range s.Scene.Sources(namespace) {
		stock := s.Scene.Stock(namespace, source)
		m.Wanted += int64(len(book.Wanted(stock.Binding)))
		for _, step := range book.Plan(stock) {
			if step.Verb == infer.Conflict {
				m.Conflicts++
			} else {
				m.Pending++
			}
		}
	}
	if at := s.Finished(namespace); !at.IsZero() {
		m.LastPass = timestamppb.New(at)
	}
	return m
}

// CheckDrift implements InferenceService.
func (s *Server) CheckDrift(ctx context.Context, r *inferencev1.CheckDriftRequest) (*inferencev1.CheckDriftResponse, error) {
	revision, err := s.ready()
	if err != nil {
		return nil, err
	}
	rules, err := read[rolev1alpha1.ImpliedRoles](ctx, s.Lister, topology.ImpliedRoles(), r.GetNamespace())
	if err != nil {
		return nil, err
	}
	ns := infer.Namespace{Name: r.GetNamespace()}
	for _, rule := range rules {
		if rule.DeletionTimestamp == nil {
			ns.Rules = append(ns.Rules, scene.RuleOf(rule))
		}
	}
	if ns.Bindings, err = read[infer.Binding](ctx, s.Lister, topology.RoleBindings(), r.GetNamespace()); err != nil {
		return nil, err
	}
	response := &inferencev1.CheckDriftResponse{Revision: revision, Synced: true}
	for _, step := range infer.Infer(ns, s.Scene.Policy).Steps(ns.Bindings) {
		list := map[infer.Verb]*[]*inferencev1.BindingChange{
			infer.Create: &response.Missing, infer.Delete: &response.Extra, infer.Update: &response.Altered, infer.Conflict: &response.Conflicts,
		}[step.Verb]
		if list != nil && len(*list) < maxListed {
			*list = append(*list, bindingChange(step))
		}
	}
	response.InStep = len(response.GetMissing())+len(response.GetExtra())+len(response.GetAltered())+len(response.GetConflicts()) == 0
	return response, nil
}

func read[T any](ctx context.Context, from Lister, kind topology.Kind, namespace string) ([]*T, error) {
	var all []*T
	for change, err := range from.List(ctx, kind, namespace) {
		if err != nil {
			return nil, err
		}
		value := new(T)
		if err := json.Unmarshal(change.Object, value); err != nil {
			return nil, fmt.Errorf("decoding %s: %w", change.Key, err)
		}
		all = append(all, value)
	}
	return all, nil
}
