package reflector

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

var errDown = errors.New("connection refused")

// fakeSource is an API server with one kind. Tests can make it fail.
type fakeSource struct {
	mu sync.Mutex
	// of is the kind, if that is not Store.
	of      *kinds.Kind
	seed    maphash.Seed
	epoch   string
	version int
	objects map[string]source.Object
	history []source.Event
	// forgotten is the version up to which no watch can start any more.
	forgotten int
	down      bool
	// unread means that reads of single objects are not answered, while watches go on.
	unread   bool
	unserved bool
	// changed is closed and replaced at every change; ended ends the running watches.
	changed, ended chan struct{}
	lists          map[string][]source.Object
	// pages counts the pages of lists, told the events of watches.
	pages, told int
}

const pageOfTest = 10

func newFakeSource() *fakeSource {
	return &fakeSource{
		seed: maphash.MakeSeed(), epoch: "epoch", version: 100, objects: map[string]source.Object{}, lists: map[string][]source.Object{},
		changed: make(chan struct{}), ended: make(chan struct{}),
	}
}

func (c *fakeSource) key(name string) event.Key {
	return event.Key{Cluster: "local", GroupResource: c.kind().GroupResource, Name: name}
}

func (c *fakeSource) kind() kinds.Kind {
	if c.of != nil {
		return *c.of
	}
	return kinds.Stores()
}

func (c *fakeSource) record(o source.Object) {
	c.history = append(c.history, source.Event{Object: o, Version: o.ResourceVersion})
	close(c.changed)
	c.changed = make(chan struct{})
}

// apply creates or updates an object. note stands for fields that no consumer reads, such as another owner's status.
func (c *fakeSource) apply(name, spec, note string) {
	c.put(name, spec, fmt.Appendf(nil, `{"spec":"%s","note":"%s"}`, spec, note))
}

func (c *fakeSource) put(name, spec string, object []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.version++
	o, exists := c.objects[name]
	if !exists {
		o.Change = event.Change{Key: c.key(name), Version: c.kind().Version, Kind: c.kind().Kind, UID: fmt.Sprint("uid-", c.version), Epoch: c.epoch}
	}
	o.ResourceVersion, o.ObservedAt = strconv.Itoa(c.version), time.Now()
	o.Object = object
	o.ContentHash = fmt.Sprint(o.UID, maphash.String(c.seed, spec))
	c.objects[name] = o
	c.record(o)
}

func (c *fakeSource) uid(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.objects[name].UID
}

func (c *fakeSource) remove(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	o, exists := c.objects[name]
	if !exists {
		return
	}
	c.version++
	o.Deleted, o.ResourceVersion, o.ObservedAt = true, strconv.Itoa(c.version), time.Now()
	delete(c.objects, name)
	c.record(o)
}

// set changes the behaviour of the cluster.
func (c *fakeSource) set(change func(*fakeSource)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	change(c)
}

// backup saves the state of the cluster. restore restores that state, including versions.
func (c *fakeSource) backup() (restore func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, objects, history := c.version, maps.Clone(c.objects), slices.Clone(c.history)
	return func() {
		c.set(func(c *fakeSource) {
			c.version, c.objects, c.history = version, maps.Clone(objects), slices.Clone(history)
		})
	}
}

// FindServedKind returns no kind, because no others exist.
func (c *fakeSource) FindServedKind(context.Context, event.GroupResource) (kinds.Kind, error) {
	return kinds.Kind{}, source.ErrNotServed
}

// forget makes all watches expire.
func (c *fakeSource) forget() {
	c.set(func(c *fakeSource) { c.version++; c.forgotten = c.version; c.history = nil })
	c.interrupt()
}

// interrupt ends all watches, as the end of a connection does.
func (c *fakeSource) interrupt() {
	c.set(func(c *fakeSource) { close(c.ended); c.ended = make(chan struct{}) })
}

func (c *fakeSource) ClusterUID(context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down || c.unread {
		return "", errDown
	}
	return c.epoch, nil
}

func (c *fakeSource) CurrentResourceVersion(context.Context, kinds.Kind) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.down:
		return "", errDown
	case c.unserved:
		return "", source.ErrNotServed
	}
	return strconv.Itoa(c.version), nil
}

func (c *fakeSource) List(_ context.Context, _ kinds.Kind, token string) (source.Page, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.down:
		return source.Page{}, errDown
	case c.unserved:
		return source.Page{}, source.ErrNotServed
	case token == "":
		token = fmt.Sprintf("%d/%d", c.version, c.pages) // Each list has its own token.
		c.lists[token] = slices.Collect(maps.Values(c.objects))
	}
	c.pages++
	rest := c.lists[token]
	version, _, _ := strings.Cut(token, "/")
	page := source.Page{Objects: rest[:min(pageOfTest, len(rest))], Version: version}
	if c.lists[token] = rest[len(page.Objects):]; len(c.lists[token]) > 0 {
		page.Next = token
	}
	return page, nil
}

func (c *fakeSource) ListNamed(_ context.Context, _ kinds.Kind, name string) (source.Page, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	page := source.Page{Version: strconv.Itoa(c.version)}
	if o, exists := c.objects[name]; exists {
		page.Objects = append(page.Objects, o)
	}
	switch {
	case c.down:
		return source.Page{}, errDown
	case c.unserved:
		return source.Page{}, source.ErrNotServed
	}
	return page, nil
}

// ContentHash returns the fingerprint of the UID and the field spec.
func (c *fakeSource) ContentHash(_ kinds.Kind, published event.Change) (string, error) {
	var object struct{ Spec string }
	err := json.Unmarshal(published.Object, &object)
	return fmt.Sprint(published.UID, maphash.String(c.seed, object.Spec)), err
}

func (c *fakeSource) Watch(ctx context.Context, _ kinds.Kind, version string) iter.Seq2[source.Event, error] {
	return func(yield func(source.Event, error) bool) {
		from, err := strconv.Atoi(version)
		for err == nil {
			var events []source.Event
			var changed, ended chan struct{}
			if events, changed, ended, err = c.after(from); err != nil {
				break
			}
			for _, e := range events {
				if !yield(e, nil) {
					return
				}
				c.set(func(c *fakeSource) { c.told++ })
				from, _ = strconv.Atoi(e.Version)
			}
			select {
			case <-ctx.Done():
				err = ctx.Err()
			case <-ended:
				return
			case <-changed:
			}
		}
		yield(source.Event{}, err)
	}
}

func (c *fakeSource) after(version int) ([]source.Event, chan struct{}, chan struct{}, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.down:
		return nil, nil, nil, errDown
	case version < c.forgotten, c.unserved:
		return nil, nil, nil, source.ErrExpired
	}
	i := slices.IndexFunc(c.history, func(e source.Event) bool {
		at, _ := strconv.Atoi(e.Version)
		return at > version
	})
	if i < 0 {
		return nil, c.changed, c.ended, nil
	}
	return slices.Clone(c.history[i:]), c.changed, c.ended, nil
}

// eventually polls until what returns nil, or fails with its last error.
func eventually(t testing.TB, what func() error) {
	t.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := what()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
		<-time.After(5 * time.Millisecond)
	}
}
