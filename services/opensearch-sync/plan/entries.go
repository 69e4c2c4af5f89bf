package plan

import "slices"

// with returns the union: the entries of e, then the entries that only other has, sorted. And is taken from e unless it
// is empty there.
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

// and returns e, and drops And unless the mapping has the same list now.
func (e Entries) and(there Entries) Entries {
	if !sameSet(e.And, there.And) {
		e.And = nil
	}
	return e
}

// without returns the entries of e that other lacks. It compares And as a whole.
func (e Entries) without(other Entries) Entries {
	left := e.each(other, func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
	})
	if left.And = e.And; sameSet(e.And, other.And) {
		left.And = nil
	}
	return left
}

// within returns the entries of e that other has, too. It compares And as a whole.
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

// sorted returns the texts in order and without duplicates.
func sorted(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}
