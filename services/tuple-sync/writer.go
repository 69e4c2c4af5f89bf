package tuplesync

import (
	"context"
	"errors"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// storeWriter writes to OpenFGA stores for declared and derived tuples.
type storeWriter struct {
	openFGA tupleWriter
	metrics *writeMetrics
}

// tupleWriter holds the calls to OpenFGA.
type tupleWriter interface {
	Write(ctx context.Context, storeID, modelID string, add, remove []*openfgav1.TupleKey) error
}

// Write adds and removes tuples. If the server refuses additions, Write makes the others, removes nothing,
// and returns the refused ones. The caller must then plan again.
func (w *storeWriter) Write(ctx context.Context, change tuple.Write) (refused map[tuple.Tuple]error, err error) {
	err = w.sendWrite(ctx, change, change.Add, change.Remove)
	switch {
	case errors.Is(err, fga.ErrInvalidTuple) && len(change.Add) > 0:
		refused = map[tuple.Tuple]error{}
		if failed := w.writeWithoutRefused(ctx, change, change.Add, refused); failed != nil {
			return nil, failed
		}
		if len(refused) == 0 {
			return nil, err
		}
		w.metrics.countRefusedTuples(len(refused))
		return refused, nil
	case len(change.Add) == 0 && !change.Sure && (errors.Is(err, fga.ErrModelNotFound) || errors.Is(err, fga.ErrStoreNotFound)):
		// A store without a model has no tuples.
	case err != nil:
		return nil, err
	}
	w.metrics.countWrite(change)
	return refused, nil
}

func (w *storeWriter) sendWrite(ctx context.Context, change tuple.Write, add, remove []tuple.Tuple) error {
	return w.openFGA.Write(ctx, change.StoreID, change.ModelID, tuple.ToOpenFGAKeys(add), tuple.ToOpenFGAKeys(remove))
}

// writeWithoutRefused writes every tuple that the server accepts, by halving the list, and collects the refused ones.
func (w *storeWriter) writeWithoutRefused(ctx context.Context, change tuple.Write, add []tuple.Tuple, refused map[tuple.Tuple]error) error {
	err := w.sendWrite(ctx, change, add, nil)
	if !errors.Is(err, fga.ErrInvalidTuple) {
		return err
	}
	if len(add) == 1 {
		refused[add[0]] = errors.New(tuple.RefusalReason(err))
		return nil
	}
	half := len(add) / 2
	if err := w.writeWithoutRefused(ctx, change, add[:half], refused); err != nil {
		return err
	}
	return w.writeWithoutRefused(ctx, change, add[half:], refused)
}
