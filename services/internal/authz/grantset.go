package authz

import (
	"iter"
	"slices"
)

// fewGrants bounds the grants that are searched linearly. A slice needs less memory than a map.
const fewGrants = 16

// grantSet holds the grants of a principal with their bindings. Most sets are small.
type grantSet struct {
	few []grantBinding
	// many replaces few in a large set.
	many map[*grant][]*binding
}

type grantBinding struct {
	grant   *grant
	binding *binding
}

// bindingOfGrant returns a binding that gives the grant, or nil.
func (s *grantSet) bindingOfGrant(g *grant) *binding {
	for _, one := range s.few {
		if one.grant == g {
			return one.binding
		}
	}
	if bindings := s.many[g]; len(bindings) > 0 {
		return bindings[0]
	}
	return nil
}

// allGrants yields each grant with one of its bindings.
func (s *grantSet) allGrants() iter.Seq2[*grant, *binding] {
	return func(yield func(*grant, *binding) bool) {
		for i, one := range s.few {
			first := slices.IndexFunc(s.few, func(other grantBinding) bool { return other.grant == one.grant })
			if first == i && !yield(one.grant, one.binding) {
				return
			}
		}
		for g, bindings := range s.many {
			if !yield(g, bindings[0]) {
				return
			}
		}
	}
}

// grantCountBound returns an upper bound of the number of grants. It is 0 only if there are no grants.
func (s *grantSet) grantCountBound() int { return len(s.few) + len(s.many) }

func (s *grantSet) addBinding(b *binding) {
	if s.many == nil && len(s.few) < fewGrants {
		s.few = append(s.few, grantBinding{b.grant, b})
		return
	}
	if s.many == nil {
		s.many = make(map[*grant][]*binding, 2*fewGrants)
		for _, one := range s.few {
			s.many[one.grant] = append(s.many[one.grant], one.binding)
		}
		s.few = nil
	}
	s.many[b.grant] = append(s.many[b.grant], b)
}

// removeBinding removes a binding. Its grant remains as long as another binding gives the same grant.
func (s *grantSet) removeBinding(b *binding) {
	s.few = slices.DeleteFunc(s.few, func(one grantBinding) bool { return one.binding == b })
	if s.many == nil {
		return
	}
	s.many[b.grant] = slices.DeleteFunc(s.many[b.grant], func(other *binding) bool { return other == b })
	if len(s.many[b.grant]) == 0 {
		delete(s.many, b.grant)
	}
}
