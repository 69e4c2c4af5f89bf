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

// passHistory holds the results of earlier passes over namespaces. With it, a pass plans only the sources that a change may
// concern, and statuses can report obstacles. Without it, a pass plans everything.
type passHistory struct {
	state *state.State

	mu         sync.Mutex
	namespaces map[string]*namespaceHistory
}

type namespaceHistory struct {
	name string

	mu sync.Mutex
	// changes holds the changes that no pass has taken.
	changes changeSet
	// own holds the states that this process wrote and is about to store in the informer.
	own map[event.Key]event.Change
	// ruleSet is the rule set of the last pass. It is nil before the first.
	ruleSet *infer.RuleSet
	// obstacles holds the obstacles of the last plan of each source.
	obstacles map[string][]infer.BindingObstacle
	// waiting maps an occupied name to the source whose generated binding needs it.
	waiting map[string]string
	// listed is the listing that successive passes share. Only passes access it.
	listed sourceListing
	// foreign maps bindings that falsely look generated to the UID for which an Event was written.
	foreign map[string]string
	// busy means that obstacles may still change. due means that statuses must be written when that ends.
	busy, due bool
	// pace limits how often statuses are written.
	pace statusThrottle
	// finished is the time at which the namespace was last in its desired state.
	finished time.Time
}

func newPassHistory(s *state.State) *passHistory {
	return &passHistory{state: s, namespaces: map[string]*namespaceHistory{}}
}

// ensureNamespaceHistory returns the memory of a namespace. It creates one that marks everything as changed if no pass has seen it.
func (m *passHistory) ensureNamespaceHistory(name string) *namespaceHistory {
	m.mu.Lock()
	defer m.mu.Unlock()
	n, ok := m.namespaces[name]
	if !ok {
		n = &namespaceHistory{
			name: name, changes: newChangeSet(true), own: map[event.Key]event.Change{}, obstacles: map[string][]infer.BindingObstacle{},
			waiting: map[string]string{}, foreign: map[string]string{},
		}
		m.namespaces[name] = n
	}
	return n
}

// findNamespaceHistory returns the memory of a namespace, or nil if no pass has seen it.
func (m *passHistory) findNamespaceHistory(name string) *namespaceHistory {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.namespaces[name]
}

// namespaceNames lists the namespaces that passes have seen.
func (m *passHistory) namespaceNames() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Collect(maps.Keys(m.namespaces))
}

func (m *passHistory) forgetNamespace(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.namespaces, name)
}

// lastSyncedAt returns the time at which a namespace was last in its desired state. It is zero if this process has not
// reached it.
func (m *passHistory) lastSyncedAt(name string) time.Time {
	n := m.findNamespaceHistory(name)
	if n == nil {
		return time.Time{}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.finished
}

// beginPass records the rule set of a pass and returns that of the pass before.
func (n *namespaceHistory) beginPass(ruleSet *infer.RuleSet) (before *infer.RuleSet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before, n.ruleSet, n.busy = n.ruleSet, ruleSet, true
	if !ruleSet.IsSameRuleSet(before) {
		n.pace.recordRuleChange(time.Now())
	}
	return before
}

// passResult holds the result of a pass.
type passResult struct {
	// finished means that nothing is left to do. unfinished means that another pass follows at once.
	finished, unfinished bool
	// news means that statuses may change.
	news bool
}

// endPass records the end of a pass. It reports, once, whether statuses must be written now.
func (n *namespaceHistory) endPass(e passResult) (statuses bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.busy, n.due = e.unfinished, n.due || e.news; e.finished {
		n.finished, n.listed = time.Now(), sourceListing{}
	}
	statuses, n.due = n.due && !n.busy, n.due && n.busy
	return statuses
}

// recordStatusWriteDuration records the time that writing statuses took.
func (n *namespaceHistory) recordStatusWriteDuration(took time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pace.recordStatusWriteDuration(time.Now(), took)
}

// statusDelay returns the remaining time before statuses may be written.
func (n *namespaceHistory) statusDelay() time.Duration {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pace.remainingStatusDelay(time.Now())
}

// collectObstacles returns the obstacles of all sources in order. It returns one of each reason per pair of roles, because every
// binding may have one.
//
// The result known is false while obstacles may change, or if the rules have changed. Then statuses are due later.
func (n *namespaceHistory) collectObstacles(ruleSet *infer.RuleSet) (obstacles []infer.BindingObstacle, known bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.due = n.busy || !ruleSet.IsSameRuleSet(n.ruleSet); n.due {
		return nil, false
	}
	first := map[infer.BindingObstacle]infer.BindingObstacle{}
	for _, all := range n.obstacles {
		for _, o := range all {
			kind := o
			kind.Name, kind.Message = "", ""
			if least, ok := first[kind]; !ok || o.Compare(least) < 0 {
				first[kind] = o
			}
		}
	}
	return slices.SortedFunc(maps.Values(first), infer.BindingObstacle.Compare), true
}

// recordObstacles records the obstacles of a source. It returns the occupied names that were not recorded before, and reports
// whether the obstacles have changed.
func (n *namespaceHistory) recordObstacles(source string, obstacles []infer.BindingObstacle) (taken []string, changed bool) {
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

// sourcesNeedingBindings lists the sources that need one of the given names.
func (n *namespaceHistory) sourcesNeedingBindings(bindings map[string]struct{}) []string {
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

// recordFalselyGeneratedBinding records the UID of a binding that falsely looks generated, or none. It reports whether the UID is
// new.
func (n *namespaceHistory) recordFalselyGeneratedBinding(source, uid string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.foreign[source]
	if n.foreign[source] = uid; uid == "" {
		delete(n.foreign, source)
	}
	return uid != "" && known != uid
}
