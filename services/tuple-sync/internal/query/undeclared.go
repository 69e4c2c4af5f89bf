package query

import (
	"cmp"
	"context"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"google.golang.org/protobuf/types/known/timestamppb"

	tuplev1 "github.com/entail-dev/entail/gen/entail/tuple/v1"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// lookedAt is the default number of tuples that one page reads.
const lookedAt = 100

// ListUndeclaredTuples lists the tuples that OpenFGA holds and no object declares. It reads OpenFGA before the
// informer: a tuple written meanwhile was declared before.
func (s *Server) ListUndeclaredTuples(ctx context.Context, r *tuplev1.ListUndeclaredTuplesRequest) (*tuplev1.ListUndeclaredTuplesResponse, error) {
	store, err := s.findStore(ctx, r.GetStore())
	if err != nil {
		return nil, err
	}
	id := store.Value.Status.StoreID
	if id == "" {
		return nil, rpc.NotFoundError("Store %q has no OpenFGA store yet; its conditions give the reason", r.GetStore())
	}
	token, seal, err := rpc.OpenPageToken(r, id)
	if err != nil {
		return nil, err
	}
	page, next, err := s.readTuplePage(ctx, id, cmp.Or(r.GetPageSize(), lookedAt), token)
	if err != nil {
		return nil, rpcError(err)
	}
	if store, err = s.findStore(ctx, r.GetStore()); err != nil {
		return nil, err
	}
	model, err := s.cfg.Models.Get(ctx, id, store.Value.Status.AuthorizationModelID)
	if err != nil {
		return nil, err
	}
	held, written := make([]tuple.Tuple, len(page)), make(map[tuple.ID]time.Time, len(page))
	for i, t := range page {
		held[i] = tuple.FromOpenFGA(t.GetKey())
		written[held[i].ID] = t.GetTimestamp().AsTime()
	}
	response := &tuplev1.ListUndeclaredTuplesResponse{NextPageToken: seal(next)}
	for _, u := range s.cfg.State.UndeclaredTuples(id, model, held, written) {
		response.Tuples = append(response.Tuples, undeclaredToProto(u, timestamppb.New(written[u.ID])))
	}
	return response, nil
}

// readTuplePage reads n tuples of a store, and returns the token of the next page.
func (s *Server) readTuplePage(ctx context.Context, storeID string, n int32, token string) (all []*openfgav1.Tuple, next string, err error) {
	for next = token; n > 0; {
		page, following, err := s.cfg.OpenFGA.ReadTuplePage(ctx, storeID, n, next)
		if err != nil {
			return nil, "", err
		}
		all, next = append(all, page...), following
		if n -= int32(len(page)); len(page) == 0 || next == "" {
			break
		}
	}
	return all, next, nil
}

func undeclaredToProto(u plan.UndeclaredTuple, written *timestamppb.Timestamp) *tuplev1.UndeclaredTuple {
	declared := tupleDeclaration{Tuple: u.Tuple}.toProto("")
	m := &tuplev1.UndeclaredTuple{
		Key: declared.GetKey(), Condition: declared.GetCondition(), WrittenAt: written, Fate: fateToProto(u.Fate), Message: u.Reason,
	}
	for _, o := range u.Recorders {
		m.RecordedBy = append(m.RecordedBy, ownerKind(o)+"/"+o.Key.Name)
	}
	return m
}

func fateToProto(f plan.UndeclaredFate) tuplev1.Fate {
	switch f {
	case plan.ToBeRemoved:
		return tuplev1.Fate_FATE_TO_BE_REMOVED
	case plan.ToBeReplaced:
		return tuplev1.Fate_FATE_TO_BE_REPLACED
	case plan.Contested:
		return tuplev1.Fate_FATE_CONTESTED
	case plan.Kept:
		return tuplev1.Fate_FATE_KEPT
	default:
		return tuplev1.Fate_FATE_UNMANAGED
	}
}
