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
	// few are read one by one, whatever there is.
	few = 50
	// listed is how many objects that are listed cost as much as one that is read.
	listed = 16
	// lately is for how long what is asked counts together.
	lately = 10 * time.Second
)

// Lister lists objects as the API server has them.
type Lister interface {
	List(ctx context.Context, kind kinds.Kind, namespace string) iter.Seq2[event.Change, error]
}

// bulk knows when to list all objects of a kind. Who asks for many, asks for one after the other, and unless that one
// says so, for how many nobody knows. So those of a kind are listed once as many were asked for as cost that much: whatever
// is still to come, it is no more than twice the least.
type bulk struct {
	lister Lister

	mu sync.Mutex
	// room is how many more may make lists, or wait for them.
	room  int
	kinds map[event.GroupResource]*demand
}

// demand is what is asked for of a kind.
type demand struct {
	// n were asked for since, or are expected to be.
	n     int
	since time.Time
	// list is being made; nil if none is.
	list *list
}

// list is one of all objects of a kind, while it is made.
type list struct {
	done chan struct{}
	// changed are the objects that the bus told of meanwhile: what is listed of them may be from before.
	changed map[event.Key]bool
}

// InBulk has objects listed where that costs less than to read them one by one. One makes a list, and others wait for it: in
// all as many as there is room for, since each may hold up others. Those beyond read for themselves. Call it before all else.
func (c *Confirmer) InBulk(lister Lister, room int) {
	c.bulk = bulk{lister: lister, room: room, kinds: map[event.GroupResource]*demand{}}
}

// Expect says that so many objects of a kind will be asked for soon, so that they are listed at once if that costs less.
func (c *Confirmer) Expect(of event.GroupResource, n int) {
	if c.bulk.lister == nil {
		return
	}
	c.bulk.mu.Lock()
	defer c.bulk.mu.Unlock()
	c.bulk.want(of, n)
}

// want counts what is asked for.
func (c *Confirmer) want(all []opened) {
	if c.bulk.lister == nil {
		return
	}
	c.bulk.mu.Lock()
	defer c.bulk.mu.Unlock()
	for _, o := range all {
		c.bulk.want(o.says.change.Key.GroupResource, 1)
	}
}

// want counts so many of a kind; the caller holds the lock.
func (b *bulk) want(of event.GroupResource, n int) {
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

// list lists all objects of a kind, or waits for who does, if so many of them are asked for. It reports whether that was done.
func (c *Confirmer) list(ctx context.Context, s Statement) bool {
	kind, ok := kinds.Of(s.change.Key.GroupResource)
	if !ok || c.bulk.lister == nil || s.change.Key.Cluster != c.cluster || kind.MetadataOnly || s.change.Version != kind.Version {
		return false
	}
	l, first := c.bulk.join(kind.GroupResource, c.view.Size(kind.GroupResource))
	if l == nil {
		return false
	}
	defer c.bulk.leave()
	if first {
		defer c.bulk.end(kind.GroupResource)
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

// join is the list to wait for, or to make if one is the first; nil if there is none, or no room.
func (b *bulk) join(of event.GroupResource, size int) (l *list, first bool) {
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

// leave makes room for another.
func (b *bulk) leave() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.room++
}

// end lets those go on who wait for a list.
func (b *bulk) end(of event.GroupResource) {
	b.mu.Lock()
	defer b.mu.Unlock()
	close(b.kinds[of].list.done)
	b.kinds[of] = &demand{since: time.Now()}
}

// changed notes what the bus tells of.
func (b *bulk) changed(k event.Key) {
	if b.lister == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := b.kinds[k.GroupResource]; d != nil && d.list != nil {
		d.list.changed[k] = true
	}
}

// hearAll remembers what the API server says of all objects of a kind, as what a statement is about.
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

// hearListed remembers what was listed of an object, if nothing else is known of it.
func (c *Confirmer) hearListed(k event.Key, is essence, l *list) {
	c.bulk.mu.Lock()
	defer c.bulk.mu.Unlock()
	if _, known := c.known.Get(k); !known && !l.changed[k] {
		c.known.Add(k, heard{is, true})
	}
}
