package impliedrole

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/event"
)

// memory is what is known of namespaces from earlier passes: enough to plan only for what a
// change may concern, and to tell what stands in the way. Without it everything is planned.
type memory struct {
	state *state.State

	mu         sync.Mutex
	namespaces map[string]*namespace
}

type namespace struct {
	name string

	mu sync.Mutex
	// changes are those that no pass has taken.
	changes changeSet
	// own are the states that are about to be taken in because this process made them.
	own map[event.Key]event.Change
	// ruleSet of the last pass; nil before the first.
	ruleSet *infer.RuleSet
	// obstacles by source, as of when each was last planned for.
	obstacles map[string][]infer.Obstacle
	// waiting is which source would have the names that others have.
	waiting map[string]string
	// listed is what passes read together when one does what another left; only they touch it.
	listed listing
	// foreign bindings claim to be generated; the value is the UID of the one that was told of.
	foreign map[string]string
	// busy means that what statuses tell may change at any moment, due that they are then to be written.
	busy, due bool
	// pace is when statuses are written.
	pace pace
	// finished is when everything was last as it must be.
	finished time.Time
}

func newMemory(s *state.State) *memory { return &memory{state: s, namespaces: map[string]*namespace{}} }

// of is what is known of a namespace: that everything is to be planned, if no pass has seen it.
func (m *memory) of(name string) *namespace {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.namespaces[name]
	if !ok {
		n = &namespace{
			name: name, changes: newChangeSet(true), own: map[event.Key]event.Change{}, obstacles: map[string][]infer.Obstacle{},
			waiting: map[string]string{}, foreign: map[string]string{},
		}
		m.namespaces[name] = n
	}
	return n
}

// known is what is known of a namespace; nil if no pass has seen it.
func (m *memory) known(name string) *namespace {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.namespaces[name]
}

// names lists the namespaces that passes have seen.
func (m *memory) names() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.namespaces))
}

func (m *memory) forget(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.namespaces, name)
}

// finished is when a namespace was last as it must be; zero if this process does not know.
func (m *memory) finished(name string) time.Time {
	n := m.known(name)
	if n == nil {
		return time.Time{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.finished
}

// begin notes that a pass plans by rules, and tells by which the last one did.
func (n *namespace) begin(ruleSet *infer.RuleSet) (before *infer.RuleSet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, n.ruleSet, n.busy = n.ruleSet, ruleSet, true
	if !ruleSet.Same(before) {
		n.pace.change(time.Now())
	}
	return before
}

// ending is how a pass ended.
type ending struct {
	// finished means that nothing is left to be done, unfinished that another pass follows at once.
	finished, unfinished bool
	// news means that statuses are to tell something else.
	news bool
}

// end notes that a pass has ended, and tells, once, whether statuses are to be written now.
func (n *namespace) end(e ending) (statuses bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.busy, n.due = e.unfinished, n.due || e.news; e.finished {
		n.finished, n.listed = time.Now(), listing{}
	}
	statuses, n.due = n.due && !n.busy, n.due && n.busy
	return statuses
}

// told notes that statuses were written for so long.
func (n *namespace) told(took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pace.told(time.Now(), took)
}

// wait is for how long statuses are still not to be written.
func (n *namespace) wait() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pace.wait(time.Now())
}

// list is the obstacles of all sources in order, one of each kind between two roles: there may
// be one for every binding. While that may change, or if other rules have come, it is not known,
// and statuses are to be written later.
func (n *namespace) list(ruleSet *infer.RuleSet) (obstacles []infer.Obstacle, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.due = n.busy || !ruleSet.Same(n.ruleSet); n.due {
		return nil, false
	}
	first := map[infer.Obstacle]infer.Obstacle{}
	for _, all := range n.obstacles {
		for _, o := range all {
			kind := o
			kind.Name, kind.Message = "", ""
			if least, ok := first[kind]; !ok || o.Compare(least) < 0 {
				first[kind] = o
			}
		}
	}
	return slices.SortedFunc(maps.Values(first), infer.Obstacle.Compare), true
}

// meet notes the obstacles of a source. It lists the names that others have, as it was not known
// before, and reports whether the obstacles are others than before.
func (n *namespace) meet(source string, obstacles []infer.Obstacle) (taken []string, changed bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, known := n.obstacles[source], map[string]struct{}{}
	for _, o := range before {
		if o.Reason == infer.NameConflict {
			known[o.Name] = struct{}{}
			delete(n.waiting, o.Name)
		}
	}
	for _, o := range obstacles {
		if o.Reason == infer.NameConflict {
			n.waiting[o.Name] = source
			if _, told := known[o.Name]; !told {
				taken = append(taken, o.Name)
			}
		}
	}
	if n.obstacles[source] = obstacles; len(obstacles) == 0 {
		delete(n.obstacles, source)
	}
	return taken, !slices.Equal(before, obstacles)
}

// waitingFor lists the sources that would have one of some names.
func (n *namespace) waitingFor(bindings map[string]struct{}) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var sources []string
	for binding := range bindings {
		if source, ok := n.waiting[binding]; ok {
			sources = append(sources, source)
		}
	}
	return sources
}

// isNews reports whether a binding that claims to be generated, under this UID or none, was not known.
func (n *namespace) isNews(source, uid string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.foreign[source]
	if n.foreign[source] = uid; uid == "" {
		delete(n.foreign, source)
	}
	return uid != "" && known != uid
}
