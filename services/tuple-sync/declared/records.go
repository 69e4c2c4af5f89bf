package declared

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/tuple-sync/declared/plan"
	"github.com/entail-dev/entail/services/tuple-sync/internal/tuple"
)

// verifiedRecords holds the records that this process has verified: found at its first look at a store, written, or compared
// with OpenFGA.
//
// Another record was usually written by a previous leader. This process may have undone its tuples before it received
// the record, so it reads the store before it relies on it. A record outlives its object here.
type verifiedRecords struct {
	// settling bounds how long calls of the previous leader may still take effect.
	settling time.Duration

	mu sync.Mutex
	// kept holds records by OpenFGA store and UID of the object.
	kept map[string]map[string]verifiedRecord
	// passed holds the stores that had a pass.
	passed *cache.LRUExpireCache
	// compared holds the stores, with their models, that were compared with the record of removals.
	compared *cache.LRUExpireCache
	// contests holds contests by store and UID of the object.
	contests map[string]map[string]uncertainRecord
	// written holds tuples, by store, that this process wrote and possibly no record lists.
	written map[string]map[tuple.ID]tuple.Tuple
	// cleaned holds the removed records of objects that were deleted without our finalizer, by UID. A dropped entry
	// only causes another removal, which changes nothing.
	cleaned *cache.LRUExpireCache
}

// maxRemembered and memoryTTL bound the caches of stores and of deleted objects. Tombstones expire before memoryTTL.
const (
	maxRemembered = 65536
	memoryTTL     = 8 * 24 * time.Hour
)

// verifiedRecord is a record with the state of its object.
type verifiedRecord struct {
	change event.Change
	tuples []tuple.Tuple
}

// uncertainRecord means that another replica may still execute a record, until a time of the configured clock.
type uncertainRecord struct {
	version string
	until   time.Duration
	// over means that the store was read after that time.
	over bool
}

func newVerifiedRecords(settling time.Duration) *verifiedRecords {
	return &verifiedRecords{
		settling: settling,
		kept:     map[string]map[string]verifiedRecord{}, contests: map[string]map[string]uncertainRecord{},
		passed: cache.NewLRUExpireCache(maxRemembered), compared: cache.NewLRUExpireCache(maxRemembered),
		written: map[string]map[tuple.ID]tuple.Tuple{}, cleaned: cache.NewLRUExpireCache(maxRemembered),
	}
}

// markFirstPass reports whether this is the first pass of a store. Passes of one store run one after the other.
func (r *verifiedRecords) markFirstPass(storeID string) bool {
	_, again := r.passed.Get(storeID)
	r.passed.Add(storeID, nil, memoryTTL)
	return !again
}

// markCompared records that a store was compared with the record of removals.
func (r *verifiedRecords) markCompared(life string) { r.compared.Add(life, nil, memoryTTL) }

// isCompared reports whether [verifiedRecords.markCompared] was called for a store and its model.
func (r *verifiedRecords) isCompared(life string) bool {
	_, ok := r.compared.Get(life)
	return ok
}

// isTrusted reports whether the record of o is verified or empty.
func (r *verifiedRecords) isTrusted(o ownerObject) bool {
	if len(o.Record.Tuples) == 0 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k, ok := r.kept[o.Record.StoreID][o.UID]
	return ok && !o.Deleted && slices.Equal(k.tuples, o.Record.Tuples)
}

// startUncertainty starts a contest, unless the last one was about the same version.
func (r *verifiedRecords) startUncertainty(storeID string, o ownerObject, until time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.contests[storeID] == nil {
		r.contests[storeID] = map[string]uncertainRecord{}
	}
	if last, ok := r.contests[storeID][o.UID]; !ok || last.version != o.change.ResourceVersion {
		r.contests[storeID][o.UID] = uncertainRecord{version: o.change.ResourceVersion, until: until}
	}
}

// keepOrSuspectRecord keeps the record of an object or starts its contest, and reports whether the store must be read before the
// record is used. In the first pass of a store, only deleted objects and contested records need that.
func (r *verifiedRecords) keepOrSuspectRecord(storeID string, o *ownerObject, first bool, now time.Duration) (thorough bool) {
	if o.Record.StoreID == storeID && !r.isTrusted(*o) {
		thorough = o.Deleted || !first
		if o.Condition.Reason == plan.Syncing {
			r.startUncertainty(storeID, *o, now+r.settling)
		}
		if first && !o.Deleted {
			r.keepVerifiedRecord(storeID, *o)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if c, ok := r.contests[storeID][o.UID]; ok && !c.over {
		o.Contested, thorough = max(0, c.until-now), true
	}
	return thorough
}

// recordStartedWrite stores the tuples of a write that is about to start, before any commit.
func (r *verifiedRecords) recordStartedWrite(storeID string, tuples []tuple.Tuple) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.written[storeID] == nil {
		r.written[storeID] = map[tuple.ID]tuple.Tuple{}
	}
	for _, t := range tuples {
		r.written[storeID][t.ID] = t
	}
}

// unfinishedWrites returns tuples that this process wrote for a plan that did not finish.
func (r *verifiedRecords) unfinishedWrites(storeID string) []tuple.Tuple {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Collect(maps.Values(r.written[storeID]))
}

// finishPass drops the written tuples of a store, and closes contests whose time has passed.
func (r *verifiedRecords) finishPass(storeID string, now time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.written, storeID)
	for uid, c := range r.contests[storeID] {
		c.over = c.until <= now
		r.contests[storeID][uid] = c
	}
}

// keepVerifiedRecord stores the record of o in one store as verified.
func (r *verifiedRecords) keepVerifiedRecord(storeID string, o ownerObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if o.Record.StoreID != storeID {
		r.dropRecord(storeID, o.UID)
		return
	}
	if r.kept[storeID] == nil {
		r.kept[storeID] = map[string]verifiedRecord{}
	}
	r.kept[storeID][o.UID] = verifiedRecord{o.change, o.Record.Tuples}
}

// markCleanedUp marks a deleted object as done, until a different last record of it appears.
func (r *verifiedRecords) markCleanedUp(storeID string, o ownerObject) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.dropRecord(storeID, o.UID)
	r.cleaned.Add(o.UID, o.Record.Tuples, memoryTTL)
}

// dropRecord removes a record. The caller holds the lock.
func (r *verifiedRecords) dropRecord(storeID, uid string) {
	delete(r.kept[storeID], uid)
	if delete(r.contests[storeID], uid); len(r.contests[storeID]) == 0 {
		delete(r.contests, storeID)
	}
	if len(r.kept[storeID]) == 0 {
		delete(r.kept, storeID)
	}
}

// deletedObjectsWithTuples returns objects that were deleted without our finalizer, and whose tuples may still be in a store. They come
// from tombstones, or from kept records of objects that vanished without one. live lists the other objects of the
// store.
func (r *verifiedRecords) deletedObjectsWithTuples(s *State, storeID string, live []ownerObject) []ownerObject {
	r.mu.Lock()
	defer r.mu.Unlock()
	known := map[string]struct{}{}
	for _, o := range live {
		known[o.UID] = struct{}{}
	}
	var orphans []ownerObject
	for _, o := range s.deletedObjectsOf(storeID) {
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
		if s.isRecordSuperseded(k.change.Key, uid) {
			r.dropRecord(storeID, uid)
			continue
		}
		orphans = append(orphans, newDeletedObject(k.change, plan.TupleRecord{StoreID: storeID, Tuples: k.tuples}, plan.OwnerCondition{}))
	}
	return orphans
}
