package store

import (
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// MergeCache makes models of the modules of Stores. Parsing costs milliseconds a module.
type MergeCache struct {
	limits model.Limits
	kept   module.Cache[sources, merged]
}

type sources struct {
	core   model.Module
	others []model.Module
}

type merged struct {
	result model.Result
	err    error
}

// NewMergeCache makes an empty one.
func NewMergeCache(limits model.Limits) *MergeCache {
	return &MergeCache{limits: limits, kept: module.NewCache[sources, merged]()}
}

// Merge merges the modules of a live Store.
func (c *MergeCache) Merge(in plan.Input) (model.Result, error) {
	core, others := plan.Sources(in)
	made := c.kept.Get(in.Key, sources{core, others}, func(s sources) (made merged) {
		made.result, made.err = c.Preview(s.core, s.others)
		return made
	})
	return made.result, made.err
}

// Preview merges modules that no Store has, and keeps nothing.
func (c *MergeCache) Preview(core model.Module, others []model.Module) (model.Result, error) {
	return model.Merge(core, others, c.limits)
}
