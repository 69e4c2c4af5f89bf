package store

import (
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// MergeCache merges the modules of Stores. It caches results, because parsing takes milliseconds per module.
type MergeCache struct {
	limits model.Limits
	kept   *module.PerStoreCache[mergeInput, model.MergeResult]
}

type mergeInput struct {
	core   model.Module
	others []model.Module
}

// NewMergeCache returns an empty cache.
func NewMergeCache(limits model.Limits) *MergeCache {
	merge := func(s mergeInput) (model.MergeResult, error) { return model.Merge(s.core, s.others, limits) }
	return &MergeCache{limits: limits, kept: module.NewPerStoreCache(merge)}
}

// Merge merges the modules of a live Store.
func (c *MergeCache) Merge(in plan.Input) (model.MergeResult, error) {
	core, others := plan.ModuleSources(in)
	return c.kept.Get(in.Key, mergeInput{core, others})
}

// Limits returns the limits of a model.
func (c *MergeCache) Limits() model.Limits { return c.limits }
