package query

import (
	"context"
	"slices"
	"strings"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/tuple-sync/derived"
)

// ListLostBindings lists the names in PolicyBindings and GroupMemberships whose objects are gone for good.
func (s *Server) ListLostBindings(_ context.Context, r *tuplev1.ListLostBindingsRequest) (*tuplev1.ListLostBindingsResponse, error) {
	if err := s.cfg.Complete(); err != nil {
		return nil, rpc.IncompleteError(err)
	}
	lost, unchecked := s.cfg.LostReferences()
	lost = slices.DeleteFunc(lost, func(l derived.LostReference) bool { return !matchesPattern(r.GetNamespace(), l.Binding.Namespace) })
	slices.SortFunc(lost, func(a, b derived.LostReference) int { return strings.Compare(lostReferenceKey(a), lostReferenceKey(b)) })
	page, next, err := rpc.Paginate(lost, lostReferenceKey, r)
	if err != nil {
		return nil, err
	}
	response := &tuplev1.ListLostBindingsResponse{NextPageToken: next, Total: int64(len(lost)), NotChecked: unchecked}
	for _, l := range page {
		response.References = append(response.References, &tuplev1.LostReference{
			Kind: l.Kind, Namespace: l.Binding.Namespace, Name: l.Binding.Name, Field: l.Field, Object: l.Object, Uid: l.UID, Reason: l.Reason,
		})
	}
	return response, nil
}

// lostReferenceKey returns a value that orders references and is unique.
func lostReferenceKey(l derived.LostReference) string {
	return l.Binding.Namespace + "\x00" + l.Kind + "\x00" + l.Binding.Name + "\x00" + l.Field
}
