package plan

import "slices"

// union returns the union: the entries of e, then the entries that only other has, sorted. And is taken from e unless it
// is empty there.
func (e MappingEntries) union(other MappingEntries) MappingEntries {
	all := e.combineLists(other, func(a, b []string) []string {
		more := slices.DeleteFunc(sortUnique(b), containsFunc(a, len(b)))
		return slices.Concat(a, more)
	})
	if all.And = e.And; len(e.And) == 0 {
		all.And = other.And
	}
	return all
}

// withExistingAnd returns e, and drops And unless the mapping has the same list now.
func (e MappingEntries) withExistingAnd(there MappingEntries) MappingEntries {
	if !equalSet(e.And, there.And) {
		e.And = nil
	}
	return e
}

// minus returns the entries of e that other lacks. It compares And as a whole.
func (e MappingEntries) minus(other MappingEntries) MappingEntries {
	return e.filterEntries(other, false)
}

// intersect returns the entries of e that other has, too. It compares And as a whole.
func (e MappingEntries) intersect(other MappingEntries) MappingEntries {
	return e.filterEntries(other, true)
}

// filterEntries returns the entries of e that other has, or those that it lacks.
func (e MappingEntries) filterEntries(other MappingEntries, has bool) MappingEntries {
	left := e.combineLists(other, func(a, b []string) []string {
		isIn := containsFunc(b, len(a))
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return isIn(s) != has })
	})
	if equalSet(e.And, other.And) == has {
		left.And = e.And
	}
	return left
}

func (e MappingEntries) combineLists(other MappingEntries, combine func(a, b []string) []string) (result MappingEntries) {
	ours, theirs, into := e.singleLists(), other.singleLists(), result.singleLists()
	for i := range into {
		*into[i] = combine(*ours[i], *theirs[i])
	}
	return result
}

func equalEntries(a, b MappingEntries) bool {
	return equalSet(a.Users, b.Users) && equalSet(a.BackendRoles, b.BackendRoles) && equalSet(a.Hosts, b.Hosts) && equalSet(a.And, b.And)
}

func equalSet(a, b []string) bool { return slices.Equal(sortUnique(a), sortUnique(b)) }

// sortUnique returns the texts in order and without duplicates.
func sortUnique(texts []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(texts)))
}

// containsFunc returns a function that reports whether a text is in a list. A server can list a million entries, so many
// calls need a set.
func containsFunc(texts []string, calls int) func(string) bool {
	const few = 16
	if calls <= few {
		return func(text string) bool { return slices.Contains(texts, text) }
	}
	set := textSet(texts)
	return func(text string) bool { return set[text] }
}

func textSet(texts []string) map[string]bool {
	set := make(map[string]bool, len(texts))
	for _, text := range texts {
		set[text] = true
	}
	return set
}
