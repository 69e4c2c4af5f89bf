package opensearchsync

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// documentLocks lets one run at a time read and write a document of a server, whatever cluster object leads there. Otherwise
// two runs would each write a whole mapping without the entries of the other.
type documentLocks struct {
	mu    sync.Mutex
	locks map[string]*documentLock
}

// documentLock has room for one run. users counts the runs that hold it or wait for it.
type documentLock struct {
	room  chan struct{}
	users int
}

// lockDocument waits until no other run uses the document of a kind on a server. Connections that [clusterConnection.isSameServer] proves
// equal have a name in common. All runs lock the name by key before the name by address, which excludes a deadlock.
func (d *documentLocks) lockDocument(ctx context.Context, kind plan.EntityKind, to *clusterConnection) (unlock func(), err error) {
	is, address := to.lastServerIdentity()
	var none [sha256.Size]byte
	var held []string
	unlock = func() {
		for _, name := range held {
			<-d.adjustRefCount(name, 0).room
			d.adjustRefCount(name, -1)
		}
	}
	for i, digest := range [][sha256.Size]byte{is.Key, address} {
		if digest == none {
			continue
		}
		name := fmt.Sprintf("%s %s %d %x", kind, is.UUID, i, digest)
		select {
		case d.adjustRefCount(name, 1).room <- struct{}{}:
			held = append(held, name)
		case <-ctx.Done():
			d.adjustRefCount(name, -1)
			unlock()
			return func() {}, fault.Unavailable(context.Cause(ctx))
		}
	}
	return unlock, nil
}

// adjustRefCount adds n to the users of a document, and drops it when none is left, because servers choose the names.
func (d *documentLocks) adjustRefCount(name string, n int) *documentLock {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.locks == nil {
		d.locks = map[string]*documentLock{}
	}
	is := d.locks[name]
	if is == nil {
		is = &documentLock{room: make(chan struct{}, 1)}
		d.locks[name] = is
	}
	if is.users += n; is.users == 0 {
		delete(d.locks, name)
	}
	return is
}

// remainingUncertaintyOnServer returns how long unanswered changes of a document may still take effect, whatever cluster object they were
// made for: a change of a mapping holds the entries of all.
func (r *reconciler) remainingUncertaintyOnServer(k Key, to *clusterConnection) time.Duration {
	left := r.contests.remainingUncertainty(k)
	for _, uid := range r.connections.clustersOnSameServer(to) {
		left = max(left, r.contests.remainingUncertainty(Key{r.state.clusterKeyOfUID(uid), k.Kind}))
	}
	return left
}

// bindingsOfOtherClusters returns the bindings of other cluster objects on the same server. Recorded entries that they no longer give
// are nobody else's: otherwise each of two runs would leave them to the other. Runs of their own decide about them.
func bindingsOfOtherClusters(others []declaredObject, server string) []plan.RoleBinding {
	onServer := slices.DeleteFunc(slices.Clone(others), func(o declaredObject) bool { return o.value.CommonStatus().ManagedServer != server })
	all := toPlanBindings(onServer, server, nil)
	for i := range all {
		all[i].Elsewhere = true
	}
	return all
}

// claimsOfOtherClusters returns the objects of other cluster objects on the same server whose record claims an entity. Without
// them, each of two cluster objects would create an entity that a third client has deleted, and then repair it against
// the other.
func claimsOfOtherClusters(others []declaredObject, server string) []plan.DeclaredObject {
	all := toPlanObjects(slices.DeleteFunc(slices.Clone(others), func(o declaredObject) bool {
		return o.isDeleting() || o.value.CommonStatus().ManagedServer != server
	}), server, nil, nil)
	all = slices.DeleteFunc(all, func(o plan.DeclaredObject) bool { return !o.Synced && (o.Existing == nil || *o.Existing) })
	for i := range all {
		all[i].Elsewhere = true
	}
	return all
}

// clusterKeyOfUID returns the key of the cluster with a UID, declared or deleted.
func (s *state) clusterKeyOfUID(uid string) (k event.Key) {
	for _, c := range append(s.lastStateOfDeletedCluster(uid), s.clustersWithUID(uid)...) {
		k = clusterKey(c.Key.Cluster, c.Key.Namespace, c.Key.Name)
	}
	return k
}

// objectsManagedBy returns the objects of a kind whose record names one of these UIDs of clusters, declared or deleted.
func (s *state) objectsManagedBy(kind plan.EntityKind, uids []string) (all []declaredObject) {
	for _, uid := range uids {
		_, objects := s.runInput(Key{s.clusterKeyOfUID(uid), kind})
		all = append(all, slices.DeleteFunc(objects, func(o declaredObject) bool { return o.value.CommonStatus().ManagedCluster != uid })...)
	}
	return all
}
