package query

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/protobuf/proto"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	// maxLog bounds the changes that are kept for clients that resume, maxLogBytes their total size.
	maxLog      = 4096
	maxLogBytes = 32 << 20
	// maxChange bounds the roles that are compared for one change. A larger change clears the log, so clients begin
	// again with a snapshot, which takes no memory.
	maxChange = 200_000
	// recheck is the interval of checks whether an incomplete informer has become complete.
	recheck = 50 * time.Millisecond
)

// WatchCache turns changes of rules into numbered changes of rows. It keeps the newest ones, so a client that
// reconnects soon misses none. Numbers are valid in one process only: at another process, a client begins with a
// snapshot.
type WatchCache struct {
	state    *state.State
	complete func() error
	id       string
	wake     chan struct{}

	mu sync.Mutex
	// dirty holds the namespaces whose rules have changed.
	dirty map[string]struct{}
	// current holds the rule sets after change number last. It is nil until the informer was complete once.
	current map[string]*infer.RuleSet
	log     []namespaceChange
	bytes   int
	last    uint64
	// news is closed at the next change, and when the cache ends.
	news  chan struct{}
	ended bool
}

// namespaceChange holds the changed rows of one namespace.
type namespaceChange struct {
	number    uint64
	namespace string
	upserted  []*inferencev1.Inference
	removed   []*inferencev1.InferenceKey
	causes    []*inferencev1.RuleKey
	// bytes is the approximate size.
	bytes int
}

var (
	errEnded   = errors.New("the service is stopping: resume elsewhere")
	errTooOld  = errors.New("the token belongs to another process, or is too old: begin without a token")
	errNoToken = errors.New("the token is not one of this service's: pass resume_token as it was given")
)

// NewWatchCache returns a cache. The id must be different in every process.
func NewWatchCache(s *state.State, id string, complete func() error) *WatchCache {
	return &WatchCache{
		state: s, complete: complete, id: id, wake: make(chan struct{}, 1),
		dirty: map[string]struct{}{}, news: make(chan struct{}),
	}
}

// MarkRuleChanged marks the namespace of a changed rule. The informer calls it for every change.
func (w *WatchCache) MarkRuleChanged(k event.Key) {
	if k.GroupResource == kinds.ImpliedRoles().GroupResource {
		w.markNamespacesDirty(k.Namespace)
	}
}

// MarkAllChanged marks all namespaces. The informer calls it after it was loaded again.
func (w *WatchCache) MarkAllChanged() {
	w.mu.Lock()
	known := slices.Collect(maps.Keys(w.current))
	w.mu.Unlock()
	w.markNamespacesDirty(append(known, w.state.NamespacesWithRules()...)...)
}

func (w *WatchCache) markNamespacesDirty(namespaces ...string) {
	w.mu.Lock()
	for _, namespace := range namespaces {
		w.dirty[namespace] = struct{}{}
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // A wake-up is pending already.
	}
}

// Run follows the informer until ctx ends. Then it ends all streams.
func (w *WatchCache) Run(ctx context.Context) error {
	defer w.endAllStreams()
	for ctx.Err() == nil {
		again := w.wake
		var later <-chan time.Time
		if w.complete() == nil {
			w.flushDirtyNamespaces()
		} else {
			later = time.After(recheck)
		}
		select {
		case <-ctx.Done():
		case <-again:
		case <-later:
		}
	}
	return nil
}

func (w *WatchCache) endAllStreams() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	close(w.news)
}

// flushDirtyNamespaces records the changes of dirty namespaces. The first call also takes over the rule sets of all namespaces.
func (w *WatchCache) flushDirtyNamespaces() {
	w.mu.Lock()
	first := w.current == nil
	dirty := slices.Sorted(maps.Keys(w.dirty))
	w.dirty = map[string]struct{}{}
	w.mu.Unlock()
	if first {
		current := map[string]*infer.RuleSet{}
		for _, namespace := range w.state.NamespacesWithRules() {
			current[namespace] = w.state.RuleSet(namespace)
		}
		w.mu.Lock()
		w.current = current
		w.mu.Unlock()
	}
	for _, namespace := range dirty {
		w.recordNamespaceChange(namespace, w.state.RuleSet(namespace))
	}
}

func (w *WatchCache) recordNamespaceChange(namespace string, ruleSet *infer.RuleSet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, known := w.current[namespace]
	switch {
	case !known:
		before = infer.NewRuleSet(namespace, nil, w.state.Policy)
	case ruleSet.IsSameRuleSet(before):
		return // Only a status has changed.
	}
	if w.current[namespace] = ruleSet; len(ruleSet.Rules()) == 0 {
		delete(w.current, namespace)
	}
	touched := ruleSet.ChangedRoles(before)
	if countComparedRoles(touched, before, ruleSet) > maxChange {
		w.last++
		w.log, w.bytes = nil, 0
	} else if c, differ := compareInferences(inferenceRow{namespace: namespace, ruleSet: ruleSet}, before, touched); differ {
		w.appendChange(c)
	} else {
		return
	}
	close(w.news)
	w.news = make(chan struct{})
}

// appendChange numbers a change and appends it to the log. It drops the oldest changes beyond the limits.
func (w *WatchCache) appendChange(c namespaceChange) {
	w.last++
	c.number = w.last
	w.log = append(w.log, c)
	w.bytes += c.bytes
	for len(w.log) > maxLog || w.bytes > maxLogBytes && len(w.log) > 1 {
		w.bytes -= w.log[0].bytes
		w.log = w.log[1:]
	}
}

// countComparedRoles counts the roles that must be compared to compute a change.
func countComparedRoles(touched []infer.Role, before, after *infer.RuleSet) int {
	n := len(touched)
	for _, r := range touched {
		n += before.CountImpliedRoles(r) + after.CountImpliedRoles(r)
	}
	return n
}

// compareInferences returns the rows of the given roles that differ, with the rules that changed. It reports whether any row
// differs.
func compareInferences(now inferenceRow, before *infer.RuleSet, roles []infer.Role) (c namespaceChange, differ bool) {
	namespace, after := now.namespace, now.ruleSet
	c.namespace = namespace
	for _, role := range roles {
		was, is := toInferenceMessage(namespace, role, before), toInferenceMessage(namespace, role, after)
		switch {
		case proto.Equal(was, is):
		case len(is.GetDirect()) == 0:
			c.removed = append(c.removed, &inferencev1.InferenceKey{Namespace: namespace, Parent: is.GetParent()})
		default:
			c.upserted = append(c.upserted, is)
			c.bytes += proto.Size(is)
		}
	}
	c.causes = changedRuleKeys(namespace, before, after)
	c.bytes += (len(c.removed) + len(c.causes)) * rowBytes
	return c, len(c.upserted)+len(c.removed) > 0
}

// rowBytes is the approximate size of a key with its overhead.
const rowBytes = 500

// maxCauses bounds the rules that are named as the cause of a change.
const maxCauses = 1000

// changedRuleKeys returns the rules that were added, removed or changed.
func changedRuleKeys(namespace string, before, after *infer.RuleSet) []*inferencev1.RuleKey {
	rules := map[string]infer.EvaluatedRule{}
	for _, r := range before.Rules() {
		rules[r.Name] = r
	}
	for _, r := range after.Rules() {
		if was, ok := rules[r.Name]; !ok || was.Parent != r.Parent || was.Child != r.Child || was.Reason != r.Reason {
			rules[r.Name] = r
			continue
		}
		delete(rules, r.Name)
	}
	names := slices.Sorted(maps.Keys(rules))
	return toMessagesThatFit(names[:min(maxCauses, len(names))], maxList, func(name string) *inferencev1.RuleKey {
		return &inferencev1.RuleKey{Namespace: namespace, Name: name}
	})
}

// snapshotRows returns all rows and the number of the last change that they contain. ok is false until the informer was
// complete once.
func (w *WatchCache) snapshotRows(namespace string) (rows iter.Seq[*inferencev1.Inference], number uint64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	current, number := maps.Clone(w.current), w.last
	return func(yield func(*inferencev1.Inference) bool) {
		for _, name := range slices.Sorted(maps.Keys(current)) {
			if namespace != "" && namespace != name {
				continue
			}
			for parent := range current[name].ParentRoles() {
				if !yield(toInferenceMessage(name, parent, current[name])) {
					return
				}
			}
		}
	}, number, w.current != nil
}

// changesAfter returns the changes after a number, the number of the last one, and the channel that is closed at the next.
func (w *WatchCache) changesAfter(number uint64) (changes []namespaceChange, last uint64, news <-chan struct{}, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch oldest := w.last - uint64(len(w.log)); {
	case w.ended:
		return nil, 0, nil, errEnded
	case number < oldest || number > w.last:
		return nil, 0, nil, errTooOld
	default:
		return slices.Clone(w.log[number-oldest:]), w.last, w.news, nil
	}
}

// formatResumeToken returns the resume token of a change.
func (w *WatchCache) formatResumeToken(number uint64) string {
	return fmt.Sprintf("%s.%d", w.id, number)
}

// parseResumeToken returns the number in a token. The error differs for a malformed token and for one of another process.
func (w *WatchCache) parseResumeToken(token string) (uint64, error) {
	id, text, ok := strings.Cut(token, ".")
	number, err := strconv.ParseUint(text, 10, 64)
	switch {
	case !ok || err != nil:
		return 0, errNoToken
	case id != w.id:
		return 0, errTooOld
	}
	return number, nil
}
