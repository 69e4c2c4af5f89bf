package decide

import (
	"iter"
	"slices"
)

// fewHoldings are searched one by one, in little memory.
const fewHoldings = 16

// holdings are the grants that somebody has, each by the bindings that give it. They are few, as a rule.
type holdings struct {
	few []holding
	// many replaces few where there are more.
	many map[*grant][]*binding
}

type holding struct {
	grant   *grant
	binding *binding
}

// has gives a binding by which a grant is had; nil if it is not.
func (h *holdings) has(g *grant) *binding {
	for _, one := range h.few {
		if one.grant == g {
			return one.binding
		}
	}
	if bindings := h.many[g]; len(bindings) > 0 {
		return bindings[0]
	}
	return nil
}

// all yields each grant with a binding that gives it.
func (h *holdings) all() iter.Seq2[*grant, *binding] {
	return func(yield func(*grant, *binding) bool) {
		for i, one := range h.few {
			first := slices.IndexFunc(h.few, func(other holding) bool { return other.grant == one.grant })
			if first == i && !yield(one.grant, one.binding) {
				return
			}
		}
		for g, bindings := range h.many {
			if !yield(g, bindings[0]) {
				return
			}
		}
	}
}

// size is at least how many grants there are.
func (h *holdings) size() int { return len(h.few) + len(h.many) }

func (h *holdings) add(b *binding) {
	if h.many == nil && len(h.few) < fewHoldings {
		h.few = append(h.few, holding{b.grant, b})
		return
	}
	if h.many == nil {
		h.many = make(map[*grant][]*binding, 2*fewHoldings)
		for _, one := range h.few {
			h.many[one.grant] = append(h.many[one.grant], one.binding)
		}
		h.few = nil
	}
	h.many[b.grant] = append(h.many[b.grant], b)
}

// remove takes away whatever a binding gives.
func (h *holdings) remove(b *binding) {
	h.few = slices.DeleteFunc(h.few, func(one holding) bool { return one.binding == b })
	if h.many == nil {
		return
	}
	h.many[b.grant] = slices.DeleteFunc(h.many[b.grant], func(other *binding) bool { return other == b })
	if len(h.many[b.grant]) == 0 {
		delete(h.many, b.grant)
	}
}
