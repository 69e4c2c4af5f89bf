package storesync

import (
	"slices"
	"sync"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/plan"
)

// maxMerges bounds the merges that are remembered.
const maxMerges = 64

// merges remembers the last merge of Stores at work. Parsing costs milliseconds a module, and
// most passes follow a change of status, with the same modules as before.
type merges struct {
	limits model.Limits

	mu   sync.Mutex
	kept map[event.Key]merge
}

type merge struct {
	core   model.Module
	others []model.Module
	result model.Result
	err    error
}

func newMerges(limits model.Limits) *merges {
	return &merges{limits: limits, kept: map[event.Key]merge{}}
}

// of merges the modules of a live Store.
func (m *merges) of(in plan.Input) (model.Result, error) {
	core, others := plan.Sources(in)
	m.mu.Lock()
	known, ok := m.kept[in.Key]
	m.mu.Unlock()
	if ok && known.core == core && slices.Equal(known.others, others) {
		return known.result, known.err
	}
	made := merge{core: core, others: others}
	made.result, made.err = model.Merge(core, others, m.limits)
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.kept[in.Key]; !ok && len(m.kept) >= maxMerges {
		for other := range m.kept {
			delete(m.kept, other)
			break
		}
	}
	m.kept[in.Key] = made
	return made.result, made.err
}
