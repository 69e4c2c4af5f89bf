package ledger

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
	"github.com/entail-dev/entail/services/tuple-sync/ledger/plan"
)

// records are those that this process knows to be true: those it has found when it first
// looked at a store, written, or compared with OpenFGA.
//
// A record that appears later was written by somebody else, a predecessor as a rule, and
// what it speaks of may have been undone by this process before it knew: so the store
// is read before such a record is trusted. And a record that is kept here outlives its object.
type records struct {
	// settling bounds how long calls of the replica before may still take effect.
	settling time.Duration

	mu sync.Mutex
	// kept by OpenFGA store and UID of the object.
	kept map[string]map[string]kept
	// passed are the stores that this process has looked at lately.
	passed *cache.LRUExpireCache
	// compared are the stores, with their models, that this process has compared with the record of removals.
	compared *cache.LRUExpireCache
	// contests by store and UID of the object.
	contests map[string]map[string]contest
	// written are tuples, by store, that were written and are perhaps in nobody's record.
	written map[string]map[tuple.ID]tuple.Tuple
	// cleaned is what has been removed of objects that were deleted past us, by UID. What is forgotten
	// is removed once more, which changes nothing.
	cleaned *cache.LRUExpireCache
}

// maxRemembered and memoryTTL bound what is remembered of stores, and of objects that are gone: their
// tombstones are, too, by then.
const (
	maxRemembered = 65536
	memoryTTL     = 8 * 24 * time.Hour
)

// kept is a record with the state of the object that bears it.
type kept struct {
	change event.Change
	tuples []tuple.Tuple
}

// contest is about a record that another replica was about to carry out: it may still do so until
// some time, by the clock of the configuration.
type contest struct {
	version string
	until   time.Duration
	// over means that the store was read after that.
	over bool
}

func newRecords(settling time.Duration) *records {
	return &records{
		settling: settling,
		kept:     map[string]map[string]kept{}, contests: map[string]map[string]contest{},
		passed: cache.NewLRUExpireCache(maxRemembered), compared: cache.NewLRUExpireCache(maxRemembered),
		written: map[string]map[tuple.ID]tuple.Tuple{}, cleaned: cache.NewLRUExpireCache(maxRemembered),
	}
}

// firstPass reports whether nobody has asked this of a store before. Passes of one store follow each other.
func (r *records) firstPass(storeID string) bool {
	_, again := r.passed.Get(storeID)
	r.passed.Add(storeID, nil, memoryTTL)
	return !again
}

// noteCompared notes that a store was compared with the record of removals.
func (r *records) noteCompared(life string) { r.compared.Add(life, nil, memoryTTL) }

// isCompared reports whether this process has compared a store with the record of removals.
func (r *records) isCompared(life string) bool {
	_, ok := r.compared.Get(life)
	return ok
}

// trusts reports whether the record of o is known to be true.
func (r *records) trusts(o object) bool {
	if len(o.Record.Tuples) == 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.kept[o.Record.StoreID][o.UID]
	return ok && !o.Deleted && slices.Equal(k.tuples, o.Record.Tuples)
}

// contest opens one, unless it is about the same record as the last.
func (r *records) contest(storeID string, o object, until time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.contests[storeID] == nil {
		r.contests[storeID] = map[string]contest{}
	}
	if last, ok := r.contests[storeID][o.UID]; !ok || last.version != o.change.ResourceVersion {
		r.contests[storeID][o.UID] = contest{version: o.change.ResourceVersion, until: until}
	}
}

// doubt reports whether the store must be read before the record of an object is believed. Of the
// first look at a store only what may still be carried out by another is doubted, be the object there
// or gone.
func (r *records) doubt(storeID string, o *object, first bool, now time.Duration) (thorough bool) {
	if o.Record.StoreID == storeID && !r.trusts(*o) {
		thorough = o.Deleted || !first
		if o.Condition.Reason == plan.Syncing {
			r.contest(storeID, *o, now+r.settling)
		}
		if first && !o.Deleted {
			r.keep(storeID, *o)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.contests[storeID][o.UID]; ok && !c.over {
		o.Contested, thorough = max(0, c.until-now), true
	}
	return thorough
}

// wrote notes what is about to be written to a store, before anybody's record says that it is there.
func (r *records) wrote(storeID string, tuples []tuple.Tuple) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written[storeID] == nil {
		r.written[storeID] = map[tuple.ID]tuple.Tuple{}
	}
	for _, t := range tuples {
		r.written[storeID][t.ID] = t
	}
}

// strays are tuples that this process wrote for a plan that it could not carry out to the end.
func (r *records) strays(storeID string) []tuple.Tuple {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.written[storeID]))
}

// finish ends the matter of what was written, and of who is not contested any more.
func (r *records) finish(storeID string, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, storeID)
	for uid, c := range r.contests[storeID] {
		c.over = c.until <= now
		r.contests[storeID][uid] = c
	}
}

// keep takes the record of o in one store for true.
func (r *records) keep(storeID string, o object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.Record.StoreID != storeID {
		r.drop(storeID, o.UID)
		return
	}
	if r.kept[storeID] == nil {
		r.kept[storeID] = map[string]kept{}
	}
	r.kept[storeID][o.UID] = kept{o.change, o.Record.Tuples}
}

// clean ends the matter of an object that was deleted past us, unless it turns out that its last
// record was another.
func (r *records) clean(storeID string, o object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drop(storeID, o.UID)
	r.cleaned.Add(o.UID, o.Record.Tuples, memoryTTL)
}

// drop forgets a record; the caller holds the lock.
func (r *records) drop(storeID, uid string) {
	delete(r.kept[storeID], uid)
	if delete(r.contests[storeID], uid); len(r.contests[storeID]) == 0 {
		delete(r.contests, storeID)
	}
	if len(r.kept[storeID]) == 0 {
		delete(r.kept, storeID)
	}
}

// orphans lists the objects that were deleted past us and whose tuples may still be in a store:
// as their tombstones tell, and those that are only remembered here because they vanished unseen.
// The others who have to do with the store are live.
func (r *records) orphans(s *State, storeID string, live []object) []object {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[string]struct{}{}
	for _, o := range live {
		known[o.UID] = struct{}{}
	}
	var orphans []object
	for _, o := range s.deleted(storeID) {
		cleaned, ok := r.cleaned.Get(o.UID)
		if tuples, _ := cleaned.([]tuple.Tuple); !ok || !slices.Equal(tuples, o.Record.Tuples) {
			known[o.UID] = struct{}{}
			orphans = append(orphans, o)
		}
	}
	for uid, k := range maps.Clone(r.kept[storeID]) {
		if _, ok := known[uid]; ok {
			continue
		}
		if s.accountsForItself(k.change.Key, uid) {
			r.drop(storeID, uid)
			continue
		}
		orphans = append(orphans, deletedObject(k.change, plan.Record{StoreID: storeID, Tuples: k.tuples}, plan.Condition{}))
	}
	return orphans
}
