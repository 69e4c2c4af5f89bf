package tuplesync

import (
	"context"
	"errors"
	"fmt"
	"testing"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// openFGAWithoutModel is an OpenFGA store whose model is not found.
type openFGAWithoutModel struct{}

func (openFGAWithoutModel) Write(context.Context, string, string, []*openfgav1.TupleKey, []*openfgav1.TupleKey) error {
	return fmt.Errorf("deleting: %w", fga.ErrModelNotFound)
}

func TestRemovalWithoutModelUnlessVerificationIsNeeded(t *testing.T) {
	for sure, want := range map[bool]error{false: nil, true: fga.ErrModelNotFound} {
		w := &storeWriter{openFGA: openFGAWithoutModel{}, metrics: newWriteMetrics(prometheus.NewRegistry(), func() int { return 0 })}
		_, err := w.Write(t.Context(), tuple.Write{StoreID: "S", Remove: []tuple.Tuple{{}}, Sure: sure})
		if !errors.Is(err, want) {
			t.Errorf("sure %v: %v, want %v", sure, err, want)
		}
	}
}
