package confirm

import (
	"context"
	"iter"
	"log/slog"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	// few bounds the objects that are read one by one, whatever the size of the kind.
	few = 50
	// listed is the number of listed objects that cost as much as one read.
	listed = 16
	// lately bounds the time in which requests are counted together.
	lately = 10 * time.Second
)

// Lister lists objects from the API server.
type Lister interface {
	List(ctx context.Context, kind kinds.Kind, namespace string) iter.Seq2[event.Change, error]
}

// bulk decides when to list all objects of a kind. Callers request objects one by one and usually do not announce how
// many. So a kind is listed once the requested objects have cost as much as the list. The total cost is then at most
// twice the least possible one.
type bulk struct {
	lister Lister

	mu sync.Mutex
	// room bounds the callers that make a list or wait for one.
	room  int
	kinds map[event.GroupResource]*demand
}

// demand counts the requested objects of a kind.
type demand struct {
	// n counts the objects that were requested since, or were announced.
	n     int
	since time.Time
	// list is the list in progress, or nil.
	list *list
}

// list is a listing of all objects of a kind in progress.
type list struct {
	done chan struct{}
	// changed holds the objects that changed during the listing. Their listed state may be older.
	changed map[event.Key]bool
}

// InBulk allows lists where they cost less than single reads. One caller makes the list, and others wait for it. At
// most room callers make or await a list at a time, because a list delays its callers. The others read single objects.
// Call InBulk before all else.
func (c *Confirmer) InBulk(lister Lister, room int) {
	c.bulk = bulk{lister: lister, room: room, kinds: map[event.GroupResource]*demand{}}
}

// Expect announces that n objects of a kind will be requested, so that they are listed at once if that costs less.
func (c *Confirmer) Expect(of event.GroupResource, n int) {
	if c.bulk.lister == nil {
		return
	}
	c.bulk.mu.Lock()
	defer c.bulk.mu.Unlock()
	c.bulk.countKind(of, n)
}

// countRequested counts requested objects.
func (c *Confirmer) countRequested(all []opened) {
	if c.bulk.lister == nil {
		return
	}
	c.bulk.mu.Lock()
	defer c.bulk.mu.Unlock()
	for _, o := range all {
		c.bulk.countKind(o.says.change.Key.GroupResource, 1)
	}
}

// countKind counts n objects of a kind. The caller holds the lock.
func (b *bulk) countKind(of event.GroupResource, n int) {
	d := b.kinds[of]
	if d == nil {
		d = &demand{}
		b.kinds[of] = d
	}
	if time.Since(d.since) > lately {
		d.n, d.since = 0, time.Now()
	}
	d.n += n
}

// canList lists all objects of a kind, or waits for a list in progress, if enough objects are requested. It reports
// whether a list was made.
func (c *Confirmer) canList(ctx context.Context, s Statement) bool {
	kind, ok := kinds.Of(s.change.Key.GroupResource)
	if !ok || c.bulk.lister == nil || s.change.Key.Cluster != c.cluster || kind.MetadataOnly || s.change.Version != kind.Version {
		return false
	}
	l, first := c.bulk.joinList(kind.GroupResource, c.view.Size(kind.GroupResource))
	if l == nil {
		return false
	}
	defer c.bulk.leaveList()
	if first {
		defer c.bulk.endList(kind.GroupResource)
		if err := c.hearAll(ctx, kind, s, l); err != nil {
			c.log.WarnContext(ctx, "objects are read one by one", slog.String("resource", kind.Resource), slog.Any("error", err))
		}
		return true
	}
	select {
	case <-l.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// joinList returns the list to wait for, or to make if first is true. It returns nil if no list is due, or if there is no
// room.
func (b *bulk) joinList(of event.GroupResource, size int) (l *list, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d := b.kinds[of]
	switch {
	case d == nil || b.room == 0:
		return nil, false
	case d.list != nil:
		b.room--
		return d.list, false
	case d.n <= max(few, size/listed) || size > maxConfirmed:
		return nil, false
	}
	b.room--
	d.list = &list{done: make(chan struct{}), changed: map[event.Key]bool{}}
	return d.list, true
}

// leaveList makes room for another caller.
func (b *bulk) leaveList() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room++
}

// endList ends a list, so that the waiting callers go on.
func (b *bulk) endList(of event.GroupResource) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.kinds[of].list.done)
	b.kinds[of] = &demand{since: time.Now()}
}

// recordChange records that an object changed while a list is made.
func (b *bulk) recordChange(k event.Key) {
	if b.lister == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.kinds[k.GroupResource]; d != nil && d.list != nil {
		d.list.changed[k] = true
	}
}

// hearAll stores the listed states of all objects of a kind, read as like reads its object.
func (c *Confirmer) hearAll(ctx context.Context, kind kinds.Kind, like Statement, l *list) error {
	for now, err := range c.bulk.lister.List(ctx, kind, metav1.NamespaceAll) {
		if err != nil {
			return err
		}
		var object metav1.PartialObjectMetadata
		if err := now.Decode(&object); err != nil {
			return err
		}
		now.Key.Namespace, now.Key.Name, now.UID = object.Namespace, object.Name, string(object.UID)
		is, err := like.read(now)
		if err != nil {
			return err
		}
		c.hearListed(now.Key, is, l)
	}
	return nil
}

// hearListed stores the listed state of an object, unless a newer state may exist.
func (c *Confirmer) hearListed(k event.Key, is essence, l *list) {
	c.bulk.mu.Lock()
	defer c.bulk.mu.Unlock()
	if _, known := c.known.Get(k); !known && !l.changed[k] {
		c.known.Add(k, heard{is, true})
	}
}
