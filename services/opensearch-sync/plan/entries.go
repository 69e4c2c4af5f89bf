package plan

import "slices"

// with is e and what other has beside it, sorted; And is that of e unless it has none.
func (e Entries) with(other Entries) Entries {
	all := e.each(other, func(a, b []string) []string {
		more := slices.DeleteFunc(sorted(b), func(s string) bool { return slices.Contains(a, s) })
		return slices.Concat(a, more)
	})
	if all.And = e.And; len(e.And) == 0 {
		all.And = other.And
	}
	return all
}

// and is e with its And only if that is what there is: one that is not there any more is not what may be there.
func (e Entries) and(there Entries) Entries {
	if !sameSet(e.And, there.And) {
		e.And = nil
	}
	return e
}

// without is e but for what is in other. And is one thing.
func (e Entries) without(other Entries) Entries {
	left := e.each(other, func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
	})
	if left.And = e.And; sameSet(e.And, other.And) {
		left.And = nil
	}
	return left
}

// within is what of e is in other. And is one thing.
func (e Entries) within(other Entries) Entries {
	left := e.each(other, func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
	})
	if left.And = nil; sameSet(e.And, other.And) {
		left.And = e.And
	}
	return left
}

func (e Entries) each(other Entries, combine func(a, b []string) []string) (result Entries) {
	ours, theirs, into := e.single(), other.single(), result.single()
	for i := range into {
		*into[i] = combine(*ours[i], *theirs[i])
	}
	return result
}

func sameSets(a, b Entries) bool {
	return sameSet(a.Users, b.Users) && sameSet(a.BackendRoles, b.BackendRoles) && sameSet(a.Hosts, b.Hosts) && sameSet(a.And, b.And)
}

func sameSet(a, b []string) bool { return slices.Equal(sorted(a), sorted(b)) }

// sorted is a list in order, each entry once.
func sorted(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}
