package impliedrole

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/event"
)

// space is what is remembered of a namespace between passes: enough to look only at what
// a change may have touched. Without it a pass looks at everything.
type space struct {
	// book of the last pass; nil before the first.
	book *infer.RuleSet
	dirt
	// held is which source would have the names that others have.
	held map[string]string
	// troubles of sources, as of when they were last looked at.
	troubles map[string][]infer.Obstacle
	// wrote is what this process made of bindings, until the bus says so too.
	wrote map[string]mark
	// foreign bindings claim to be generated; the value is the UID of the one that was told of.
	foreign map[string]string
	// finished is when everything was last as it must be.
	finished time.Time
}

// mark tells a state of an object from others. Of what is deleted there is no more to tell than the UID.
type mark struct{ uid, version string }

func markOf(c event.Change) mark {
	if c.Deleted {
		return mark{uid: c.UID}
	}
	return mark{c.UID, c.ResourceVersion}
}

// dirt is what is to be looked at.
type dirt struct {
	sources map[string]struct{}
	// rules asks for the statuses of all rules.
	rules bool
	// gone are objects that have been deleted.
	gone map[event.Key]struct{}
}

func newDirt() dirt { return dirt{sources: map[string]struct{}{}, gone: map[event.Key]struct{}{}} }

func (d *dirt) add(other dirt) {
	maps.Copy(d.sources, other.sources)
	maps.Copy(d.gone, other.gone)
	d.rules = d.rules || other.rules
}

func (d *dirt) clean() bool { return len(d.sources)+len(d.gone) == 0 && !d.rules }

// spaces are those of all namespaces. A space is used by one pass at a time; only what is
// dirty comes from elsewhere.
type spaces struct {
	mu  sync.Mutex
	all map[string]*space
}

func newSpaces() *spaces { return &spaces{all: map[string]*space{}} }

// touch makes things of a namespace dirty, and whatever waits for one of the names to become free.
func (s *spaces) touch(namespace string, d dirt, names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.of(namespace)
	for _, name := range names {
		if owner, ok := sp.held[name]; ok {
			sp.sources[owner] = struct{}{}
		}
	}
	sp.add(d)
}

// write notes a state that this process made.
func (s *spaces) write(c event.Change) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(c.Key.Namespace).wrote[c.Key.Name] = markOf(c)
}

// echo reports whether this process made a state, once.
func (s *spaces) echo(c event.Change) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	wrote := s.of(c.Key.Namespace).wrote
	if wrote[c.Key.Name] != markOf(c) {
		return false
	}
	delete(wrote, c.Key.Name)
	return true
}

// of is the space of a namespace; the caller holds the lock.
func (s *spaces) of(namespace string) *space {
	sp, ok := s.all[namespace]
	if !ok {
		sp = &space{dirt: newDirt(), held: map[string]string{}, troubles: map[string][]infer.Obstacle{}, wrote: map[string]mark{}, foreign: map[string]string{}}
		s.all[namespace] = sp
	}
	return sp
}

// take hands over what is dirty.
func (s *spaces) take(namespace string) (*space, dirt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.of(namespace)
	d := sp.dirt
	sp.dirt = newDirt()
	return sp, d
}

// dirty reports whether something has become so.
func (s *spaces) dirty(namespace string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.of(namespace)
	return !sp.clean()
}

// finding is what was found out about a source.
type finding struct {
	troubles []infer.Obstacle
	// held are the names for it that others have.
	held []string
}

// settle notes what was found out, and reports whether the troubles are others than before.
func (s *spaces) settle(namespace string, found map[string]finding) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.of(namespace)
	for source, f := range found {
		if before := sp.troubles[source]; len(before) > 0 {
			maps.DeleteFunc(sp.held, func(_, owner string) bool { return owner == source })
			changed = changed || !slices.Equal(before, f.troubles)
		}
		if len(f.troubles) == 0 {
			delete(sp.troubles, source)
			continue
		}
		changed = changed || len(sp.troubles[source]) == 0
		sp.troubles[source] = f.troubles
		for _, name := range f.held {
			sp.held[name] = source
		}
	}
	return changed
}

// troubles lists those of all sources of a namespace in order, one of each kind between two
// roles: there may be one for every binding.
func (s *spaces) troubles(namespace string) []infer.Obstacle {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := map[infer.Obstacle]infer.Obstacle{}
	for _, troubles := range s.of(namespace).troubles {
		for _, t := range troubles {
			kind := t
			kind.Name, kind.Message = "", ""
			if known, ok := first[kind]; !ok || t.Compare(known) < 0 {
				first[kind] = t
			}
		}
	}
	return slices.SortedFunc(maps.Values(first), infer.Obstacle.Compare)
}

// maxWrote bounds what is remembered of a namespace's own writes: what the bus never says,
// because something newer came in between, would stay for ever. Without it a source is looked
// at once more.
const maxWrote = 100_000

// finish notes that everything in a namespace is as it must be; one without anything is forgotten.
func (s *spaces) finish(namespace string, empty bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sp := s.of(namespace)
	if len(sp.wrote) > maxWrote {
		clear(sp.wrote)
	}
	if sp.finished = time.Now(); empty && sp.clean() {
		delete(s.all, namespace)
	}
}

// finished is when a namespace was last as it must be; zero if this process does not know.
func (s *spaces) finished(namespace string) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sp, ok := s.all[namespace]; ok {
		return sp.finished
	}
	return time.Time{}
}
