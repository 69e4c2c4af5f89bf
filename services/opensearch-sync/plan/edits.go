package plan

import (
	"fmt"
	"slices"
)

// EntryEdit is an operation of a JSON patch (RFC 6902). Its path begins below the entity.
type EntryEdit struct {
	Op, Path string
	Value    any
}

// EntryEdits returns the operations that turn the lists of a mapping from Was into Body, entry by entry. Entries that
// other writers append meanwhile stay. OpenSearch does not support the operation "test". Instead, an insertion at the
// old end fails if a list has become shorter. An index can hit the entry of another writer only if that one also added
// an entry, or sorted the list.
func (a Action) EntryEdits() (all []EntryEdit) {
	for _, field := range []string{"users", fieldBackendRoles, "hosts"} {
		was, want := a.Was.stringListOf(field), a.Body.stringListOf(field)
		has, wants := textSet(was), textSet(want)
		if len(was) == 0 && len(want) > 0 { // OpenSearch omits an empty list.
			all = append(all, EntryEdit{"add", field, toAnySlice(want)})
			continue
		}
		end := fmt.Sprintf("%s/%d", field, len(was))
		if slices.ContainsFunc(was, func(entry string) bool { return !wants[entry] }) {
			all = append(all, EntryEdit{"add", end, was[0]}, EntryEdit{"remove", end, nil})
		}
		for i, entry := range slices.Backward(was) {
			if !wants[entry] {
				all = append(all, EntryEdit{"remove", fmt.Sprintf("%s/%d", field, i), nil})
			}
		}
		for _, entry := range want {
			if !has[entry] {
				all = append(all, EntryEdit{"add", field + "/-", entry})
			}
		}
	}
	const joint = "and_backend_roles"
	if want := a.Body.stringListOf(joint); !equalSet(a.Was.stringListOf(joint), want) {
		all = append(all, EntryEdit{"add", joint, toAnySlice(want)})
	}
	return all
}
