package history

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"sort"
	"time"
)

// Timeline records the contents that the API server had. Revisions order all changes; marks bound the time of each
// revision. It is not safe for concurrent use.
type Timeline struct {
	// before is the state before the first of the changes.
	before  map[Key]*ObjectContent
	changes []contentChange
	marks   []revisionMark
}

// contentChange is the content of an object from a revision on; nil if it gives no access any more.
type contentChange struct {
	revision uint64
	key      Key
	object   *ObjectContent
}

// revisionMark is a read that found revision to be the newest: all revisions up to it existed by end, and every later one was
// made after start.
type revisionMark struct {
	start, end time.Time
	revision   uint64
}

// AddMark records that a read between start and end returned this revision as the newest.
func (t *Timeline) AddMark(start, end time.Time, revision uint64) {
	t.marks = append(t.marks, revisionMark{start, end, revision})
}

// AddState records the content of an object at a revision; nil if it is absent or in deletion. Order and repetition do
// not matter.
func (t *Timeline) AddState(revision uint64, key Key, object *ObjectContent) {
	t.changes = append(t.changes, contentChange{revision, key, object})
}

// earliestBegin returns the earliest time at which a revision can have begun.
func (t *Timeline) earliestBegin(revision uint64) time.Time {
	if i := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].revision >= revision }); i > 0 {
		return t.marks[i-1].start
	}
	return time.Time{}
}

// latestBegin returns the latest time at which a revision can have begun. It returns false if no mark shows that it had.
func (t *Timeline) latestBegin(revision uint64) (at time.Time, known bool) {
	i := sort.Search(len(t.marks), func(i int) bool { return t.marks[i].revision >= revision })
	if i == len(t.marks) {
		return time.Time{}, false
	}
	return t.marks[i].end, true
}

// timelineState is the content of all objects between two changes. It held at some time between from and until, at the most.
type timelineState struct {
	from, until time.Time
	last        bool
	contents    possibleContents
	allowed     map[int]bool
}

// overlaps reports whether the state may have held at some time between two times.
func (s *timelineState) overlaps(from, until time.Time) bool {
	return !s.from.After(until) && (s.last || !s.until.Before(from))
}

// collectStates returns every state, oldest first. It removes the changes that change nothing.
func (t *Timeline) collectStates() []*timelineState {
	slices.SortStableFunc(t.changes, func(a, b contentChange) int { return cmp.Compare(a.revision, b.revision) })
	now := possibleContents{}
	for k, o := range t.before {
		now[k] = []*ObjectContent{o}
	}
	current := &timelineState{last: true, contents: maps.Clone(now), allowed: map[int]bool{}}
	all, kept := []*timelineState{current}, t.changes[:0]
	for _, c := range t.changes {
		var held *ObjectContent
		if len(now[c.key]) > 0 {
			held = now[c.key][0]
		}
		if reflect.DeepEqual(held, c.object) {
			continue
		}
		kept = append(kept, c)
		if now[c.key] = []*ObjectContent{c.object}; c.object == nil {
			delete(now, c.key)
		}
		at, known := t.latestBegin(c.revision)
		current.until, current.last = at, !known
		current = &timelineState{from: t.earliestBegin(c.revision), last: true, contents: maps.Clone(now), allowed: map[int]bool{}}
		all = append(all, current)
	}
	clear(t.changes[len(kept):])
	t.changes = kept
	return all
}

// ForgetBefore drops every state that ended before a time.
func (t *Timeline) ForgetBefore(before time.Time) {
	if t.before == nil {
		t.before = map[Key]*ObjectContent{}
	}
	n := 0
	for ; n < len(t.changes); n++ {
		c := t.changes[n]
		if at, known := t.latestBegin(c.revision); !known || !at.Before(before) {
			break
		}
		if t.before[c.key] = c.object; c.object == nil {
			delete(t.before, c.key)
		}
	}
	t.changes = slices.Delete(t.changes, 0, n)
	first := sort.Search(len(t.marks), func(i int) bool { return !t.marks[i].end.Before(before) })
	t.marks = slices.Delete(t.marks, 0, max(0, first-1))
}
