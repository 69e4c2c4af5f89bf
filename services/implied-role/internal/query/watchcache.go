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
	// maxLog is how many changes are kept for those who come back, maxLogBytes how large they are together.
	maxLog      = 4096
	maxLogBytes = 32 << 20
	// maxChange is how many roles are gone through to tell a change. Of a larger one nobody is
	// told; they are sent all rows instead, which takes no memory.
	maxChange = 200_000
	// recheck is how often an incomplete view is asked again whether it is complete.
	recheck = 50 * time.Millisecond
)

// WatchCache turns changes of rules into changes of rows, numbers them, and keeps the last of
// them, so that whoever was away for a moment misses none. The numbers are this process's
// own: at another, or at the next, one begins with all rows.
type WatchCache struct {
	state    *state.State
	complete func() error
	id       string
	wake     chan struct{}

	mu sync.Mutex
	// dirty are namespaces whose rules have changed.
	dirty map[string]struct{}
	// current is what the changes up to number last add up to; nil before the view was complete.
	current map[string]*infer.RuleSet
	log     []change
	bytes   int
	last    uint64
	// news is closed at the next change, and when the cache has ended.
	news  chan struct{}
	ended bool
}

// change is what a change of rules means to the rows of one namespace.
type change struct {
	number    uint64
	namespace string
	upserted  []*inferencev1.Inference
	removed   []*inferencev1.InferenceKey
	causes    []*inferencev1.RuleKey
	// bytes is about how large it is.
	bytes int
}

var (
	errEnded   = errors.New("the service is stopping: resume elsewhere")
	errTooOld  = errors.New("the token is of another process, or too old: begin without one")
	errNoToken = errors.New("the token is not one of this service's: pass resume_token as it was given")
)

// NewWatchCache makes one. The id is new in every process.
func NewWatchCache(s *state.State, id string, complete func() error) *WatchCache {
	return &WatchCache{
		state: s, complete: complete, id: id, wake: make(chan struct{}, 1),
		dirty: map[string]struct{}{}, news: make(chan struct{}),
	}
}

// Changed is told of every change of the view.
func (w *WatchCache) Changed(k event.Key) {
	if k.GroupResource == kinds.ImpliedRoles().GroupResource {
		w.mark(k.Namespace)
	}
}

// Reloaded is told when the view was loaded anew.
func (w *WatchCache) Reloaded() {
	w.mu.Lock()
	known := slices.Collect(maps.Keys(w.current))
	w.mu.Unlock()
	w.mark(append(known, w.state.Namespaces()...)...)
}

func (w *WatchCache) mark(namespaces ...string) {
	w.mu.Lock()
	for _, namespace := range namespaces {
		w.dirty[namespace] = struct{}{}
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default: // It is awake.
	}
}

// Run follows the view until ctx ends, and then ends everybody's stream.
func (w *WatchCache) Run(ctx context.Context) error {
	defer w.end()
	for ctx.Err() == nil {
		again := w.wake
		var later <-chan time.Time
		if w.complete() == nil {
			w.catchUp()
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

func (w *WatchCache) end() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	close(w.news)
}

// catchUp makes changes of what is dirty. The first time, it only takes in what there is.
func (w *WatchCache) catchUp() {
	w.mu.Lock()
	first := w.current == nil
	dirty := slices.Sorted(maps.Keys(w.dirty))
	w.dirty = map[string]struct{}{}
	w.mu.Unlock()
	if first {
		current := map[string]*infer.RuleSet{}
		for _, namespace := range w.state.Namespaces() {
			current[namespace] = w.state.RuleSet(namespace)
		}
		w.mu.Lock()
		w.current = current
		w.mu.Unlock()
	}
	for _, namespace := range dirty {
		w.update(namespace, w.state.RuleSet(namespace))
	}
}

func (w *WatchCache) update(namespace string, ruleSet *infer.RuleSet) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before, known := w.current[namespace]
	switch {
	case !known:
		before = infer.NewRuleSet(namespace, nil, w.state.Policy)
	case ruleSet.Same(before):
		return // Only a status has changed.
	}
	if w.current[namespace] = ruleSet; len(ruleSet.Rules()) == 0 {
		delete(w.current, namespace)
	}
	touched := ruleSet.Changed(before)
	if weigh(touched, before, ruleSet) > maxChange {
		w.last++
		w.log, w.bytes = nil, 0
	} else if c, differ := compare(row{namespace: namespace, ruleSet: ruleSet}, before, touched); differ {
		w.keep(c)
	} else {
		return
	}
	close(w.news)
	w.news = make(chan struct{})
}

// keep numbers a change, and forgets the oldest when there are too many.
func (w *WatchCache) keep(c change) {
	w.last++
	c.number = w.last
	w.log = append(w.log, c)
	w.bytes += c.bytes
	for len(w.log) > maxLog || w.bytes > maxLogBytes && len(w.log) > 1 {
		w.bytes -= w.log[0].bytes
		w.log = w.log[1:]
	}
}

// weigh counts the roles that must be gone through to see what changed.
func weigh(touched []infer.Role, before, after *infer.RuleSet) int {
	n := len(touched)
	for _, r := range touched {
		n += before.Count(r) + after.Count(r)
	}
	return n
}

// compare finds the rows that differ among those of roles, and the rules that made the difference.
func compare(now row, before *infer.RuleSet, roles []infer.Role) (c change, differ bool) {
	namespace, after := now.namespace, now.ruleSet
	c.namespace = namespace
	for _, role := range roles {
		was, is := inference(namespace, role, before), inference(namespace, role, after)
		switch {
		case proto.Equal(was, is):
		case len(is.GetDirect()) == 0:
			c.removed = append(c.removed, &inferencev1.InferenceKey{Namespace: namespace, Parent: is.GetParent()})
		default:
			c.upserted = append(c.upserted, is)
			c.bytes += proto.Size(is)
		}
	}
	c.causes = causes(namespace, before, after)
	c.bytes += (len(c.removed) + len(c.causes)) * rowBytes
	return c, len(c.upserted)+len(c.removed) > 0
}

// rowBytes is about how large a key is, with what holds it.
const rowBytes = 500

// maxCauses is how many rules are named as those whose change it is.
const maxCauses = 1000

// causes are the rules that say something else, or have come or gone.
func causes(namespace string, before, after *infer.RuleSet) []*inferencev1.RuleKey {
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
	return fit(names[:min(maxCauses, len(names))], maxList, func(name string) *inferencev1.RuleKey {
		return &inferencev1.RuleKey{Namespace: namespace, Name: name}
	})
}

// snapshot is everything there is, and the number of the change up to which it is that.
func (w *WatchCache) snapshot(namespace string) (rows iter.Seq[*inferencev1.Inference], number uint64, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	current, number := maps.Clone(w.current), w.last
	return func(yield func(*inferencev1.Inference) bool) {
		for _, name := range slices.Sorted(maps.Keys(current)) {
			if namespace != "" && namespace != name {
				continue
			}
			for parent := range current[name].Parents() {
				if !yield(inference(name, parent, current[name])) {
					return
				}
			}
		}
	}, number, w.current != nil
}

// after lists the changes after a number, and gives the channel that tells of the next.
func (w *WatchCache) after(number uint64) (changes []change, last uint64, news <-chan struct{}, err error) {
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

// token names a change, so that a stream can go on after it.
func (w *WatchCache) token(number uint64) string { return fmt.Sprintf("%s.%d", w.id, number) }

// parse is the inverse of token.
func (w *WatchCache) parse(token string) (uint64, error) {
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
