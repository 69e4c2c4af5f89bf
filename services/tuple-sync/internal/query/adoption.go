package query

import (
	"cmp"
	"context"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/tuple-sync/derived"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// AdoptionPreviewer returns the effect of adopting the IAM store.
type AdoptionPreviewer interface {
	PreviewAdoption(ctx context.Context) (derived.AdoptionPreview, error)
}

// PreviewAdoption lists the tuples that adopting the IAM store removes. It reads OpenFGA before the declared state, as
// ListUndeclaredTuples does.
func (s *Server) PreviewAdoption(ctx context.Context, r *tuplev1.PreviewAdoptionRequest) (*tuplev1.PreviewAdoptionResponse, error) {
	if _, err := s.findStore(ctx, s.cfg.IAMStore); err != nil {
		return nil, err
	}
	before, err := s.cfg.IAM.PreviewAdoption(ctx)
	if err != nil {
		return nil, err
	}
	if before.StoreID == "" {
		return nil, rpc.NotFoundError("OpenFGA has no store for Store %q: there is nothing to take over", s.cfg.IAMStore)
	}
	token, seal, err := rpc.OpenPageToken(r, before.StoreID)
	if err != nil {
		return nil, err
	}
	page, next, err := s.readTuplePage(ctx, before.StoreID, cmp.Or(r.GetPageSize(), lookedAt), token)
	if err != nil {
		return nil, rpcError(err)
	}
	now, err := s.cfg.IAM.PreviewAdoption(ctx)
	if err != nil {
		return nil, err
	}
	response := &tuplev1.PreviewAdoptionResponse{
		Store: s.cfg.IAMStore, StoreId: before.StoreID, Adopted: now.Adopted, Message: now.Message, NextPageToken: seal(next),
	}
	response.Tuples = removedByAdoption(now, page)
	return response, nil
}

// removedByAdoption returns the tuples of a page that adoption removes.
func removedByAdoption(p derived.AdoptionPreview, page []*openfgav1.Tuple) (all []*tuplev1.PreviewAdoptionResponse_Tuple) {
	held, written := make([]tuple.Tuple, len(page)), make(map[tuple.ID]*timestamppb.Timestamp, len(page))
	for i, t := range page {
		held[i] = tuple.FromOpenFGA(t.GetKey())
		written[held[i].ID] = t.GetTimestamp()
	}
	for _, t := range p.UndeclaredTuples(held) {
		all = append(all, &tuplev1.PreviewAdoptionResponse_Tuple{
			Key: &tuplev1.TupleKey{Object: t.Object, Relation: t.Relation, User: t.User}, WrittenAt: written[t.ID],
		})
	}
	return all
}
