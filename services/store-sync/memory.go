package storesync

import (
	"reflect"
	"sync"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

// maxRemembered bounds the Stores whose answers are remembered.
const maxRemembered = 64

// memory remembers the last answer for Stores at work: most passes follow a change of status
// and ask the same as before. The zero value is ready for use.
type memory[Q, A any] struct {
	mu   sync.Mutex
	kept map[event.Key]remembered[Q, A]
}

type remembered[Q, A any] struct {
	question Q
	answer   A
}

// of answers a question about a Store. Neither it nor the answer may be changed afterwards.
func (m *memory[Q, A]) of(store event.Key, question Q, answer func(Q) A) A {
	m.mu.Lock()
	known, ok := m.kept[store]
	m.mu.Unlock()
	if ok && reflect.DeepEqual(known.question, question) {
		return known.answer
	}
	made := remembered[Q, A]{question, answer(question)}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.kept == nil {
		m.kept = map[event.Key]remembered[Q, A]{}
	}
	if _, ok := m.kept[store]; !ok && len(m.kept) >= maxRemembered {
		for other := range m.kept {
			delete(m.kept, other)
			break
		}
	}
	m.kept[store] = made
	return made.answer
}

// merges makes models of the modules of Stores. Parsing costs milliseconds a module.
type merges struct {
	limits model.Limits
	memory memory[sources, merged]
}

type sources struct {
	core   model.Module
	others []model.Module
}

type merged struct {
	result model.Result
	err    error
}

func newMerges(limits model.Limits) *merges { return &merges{limits: limits} }

// of merges the modules of a live Store.
func (m *merges) of(in plan.Input) (model.Result, error) {
	core, others := plan.Sources(in)
	made := m.memory.of(in.Key, sources{core, others}, func(s sources) (made merged) {
		made.result, made.err = model.Merge(s.core, s.others, m.limits)
		return made
	})
	return made.result, made.err
}
