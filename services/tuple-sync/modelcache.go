package tuplesync

import (
	"context"
	"errors"
	"time"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
)

const (
	// maxModels bounds the number of cached models; one may take 300 KiB.
	maxModels = 128
	// modelTTL bounds the age of a cached model. Models never change, but the server may later accept a tuple that it
	// refused.
	modelTTL = 24 * time.Hour
)

// modelCache caches authorization models by ID.
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

// Get returns a model. It returns nil if the store lacks the model.
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

// Put caches a model. A full cache drops the least recently used one.
func (c *modelCache) Put(model *plan.Model) { c.kept.Add(model.ID(), model, modelTTL) }

// Drop removes a model that the server has lost.
func (c *modelCache) Drop(model *plan.Model) { c.kept.Remove(model.ID()) }
