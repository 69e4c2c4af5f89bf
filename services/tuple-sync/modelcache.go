package tuplesync

import (
	"context"
	"errors"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

const (
	// maxModels bounds how many models are kept; one may take 300 KiB.
	maxModels = 128
	// modelTTL is for how long. They never change, but what the server refused it may take another day.
	modelTTL = 24 * time.Hour
)

// modelCache keeps authorization models by id.
type modelCache struct {
	openFGA modelReader
	kept    *cache.LRUExpireCache
}

type modelReader interface {
	ReadModel(ctx context.Context, storeID, modelID string) (*openfgav1.AuthorizationModel, error)
}

func newModelCache(openFGA modelReader) *modelCache {
	return &modelCache{openFGA: openFGA, kept: cache.NewLRUExpireCache(maxModels)}
}

// Get finds a model; nil when the store has no such.
func (c *modelCache) Get(ctx context.Context, storeID, modelID string) (*plan.Model, error) {
	if storeID == "" || modelID == "" {
		return nil, nil //nolint:nilnil // No model is an answer.
	}
	if kept, ok := c.kept.Get(modelID); ok {
		model, _ := kept.(*plan.Model)
		return model, nil
	}
	read, err := c.openFGA.ReadModel(ctx, storeID, modelID)
	if errors.Is(err, fga.ErrModelNotFound) || errors.Is(err, fga.ErrStoreNotFound) {
		return nil, nil //nolint:nilnil // As above.
	}
	if err != nil {
		return nil, err
	}
	model, err := plan.NewModel(read)
	if err != nil {
		return nil, err
	}
	c.Put(model)
	return model, nil
}

// Put keeps a model, in the place of the one that nobody has asked for longest.
func (c *modelCache) Put(model *plan.Model) { c.kept.Add(model.ID(), model, modelTTL) }

// Drop forgets a model that the server has lost.
func (c *modelCache) Drop(model *plan.Model) { c.kept.Remove(model.ID()) }
