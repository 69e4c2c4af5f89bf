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
	"github.com/entail-dev/entail/services/implied-role/internal/scene"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	// maxLog is how many changes are kept for those who come back, maxLogBytes how large they are together.
	maxLog      = 4096
	maxLogBytes = 32 << 20
	// maxChange is how many roles are looked at to tell a change. Of a larger one nobody is
	// told; they are sent all rows instead, which takes no memory.
	maxChange = 200_000
	// look is how often an incomplete view is looked at again.
	look = 50 * time.Millisecond
)

// Hub turns changes of rules into changes of rows, numbers them, and keeps the last of
// them, so that whoever was away for a moment misses none. The numbers are this process's
// own: at another, or at the next, one begins with all rows.
type Hub struct {
	scene    *scene.Scene
	complete func() error
	id       string
	wake     chan struct{}

	mu sync.Mutex
	// dirty are namespaces whose rules have changed.
	dirty map[string]struct{}
	// shown is what the changes up to number last add up to; nil before the view was complete.
	shown map[string]*infer.Rulebook
	log   []change
	bytes int
	last  uint64
	// news is closed at the next change, and when the hub has ended.
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

// NewHub makes a hub. The id is new in every process.
func NewHub(s *scene.Scene, id string, complete func() error) *Hub {
	return &Hub{
		scene: s, complete: complete, id: id, wake: make(chan struct{}, 1),
		dirty: map[string]struct{}{}, news: make(chan struct{}),
	}
}

// Changed is told of every change of the view.
func (h *Hub) Changed(k event.Key) {
	if k.GroupResource == kinds.ImpliedRoles().GroupResource {
		h.mark(k.Namespace)
	}
}

// Reloaded is told when the view was loaded anew.
func (h *Hub) Reloaded() {
	h.mu.Lock()
	known := slices.Collect(maps.Keys(h.shown))
	h.mu.Unlock()
	h.mark(append(known, h.scene.Namespaces()...)...)
}

func (h *Hub) mark(namespaces ...string) {
	h.mu.Lock()
	for _, namespace := range namespaces {
		h.dirty[namespace] = struct{}{}
	}
	h.mu.Unlock()
	select {
	case h.wake <- struct{}{}:
	default: // It is awake.
	}
}

// Run follows the view until ctx ends, and then ends everybody's stream.
func (h *Hub) Run(ctx context.Context) error {
	defer h.end()
	for ctx.Err() == nil {
		again := h.wake
		var later <-chan time.Time
		if h.complete() == nil {
			h.catchUp()
		} else {
			later = time.After(look)
		}
		select {
		case <-ctx.Done():
		case <-again:
		case <-later:
		}
	}
	return nil
}

func (h *Hub) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	close(h.news)
}

// catchUp makes changes of what is dirty. The first time, it only takes in what there is.
func (h *Hub) catchUp() {
	h.mu.Lock()
	first := h.shown == nil
	dirty := slices.Sorted(maps.Keys(h.dirty))
	h.dirty = map[string]struct{}{}
	h.mu.Unlock()
	if first {
		shown := map[string]*infer.Rulebook{}
		for _, namespace := range h.scene.Namespaces() {
			shown[namespace], _ = h.scene.Rulebook(namespace)
		}
		h.mu.Lock()
		h.shown = shown
		h.mu.Unlock()
	}
	for _, namespace := range dirty {
		book, _ := h.scene.Rulebook(namespace)
		h.show(namespace, book)
	}
}

func (h *Hub) show(namespace string, book *infer.Rulebook) {
	h.mu.Lock()
	defer h.mu.Unlock()
	before, known := h.shown[namespace]
	if !known {
		before = infer.NewRulebook(namespace, nil, h.scene.Policy)
	}
	if h.shown[namespace] = book; len(book.Rules()) == 0 {
		delete(h.shown, namespace)
	}
	touched := book.Changed(before)
	if weigh(touched, before, book) > maxChange {
		h.last++
		h.log, h.bytes = nil, 0
	} else if c, differ := compare(row{namespace: namespace, book: book}, before, touched); differ {
		h.keep(c)
	} else {
		return
	}
	close(h.news)
	h.news = make(chan struct{})
}

// keep numbers a change, and forgets the oldest when there are too many.
func (h *Hub) keep(c change) {
	h.last++
	c.number = h.last
	h.log = append(h.log, c)
	h.bytes += c.bytes
	for len(h.log) > maxLog || h.bytes > maxLogBytes && len(h.log) > 1 {
		h.bytes -= h.log[0].bytes
		h.log = h.log[1:]
	}
}

// weigh counts the roles that must be looked at to see what changed.
func weigh(touched []infer.Role, before, after *infer.Rulebook) int {
	n := len(touched)
	for _, r := range touched {
		n += before.Count(r) + after.Count(r)
	}
	return n
}

// compare finds the rows that differ among those of roles, and the rules that made the difference.
func compare(now row, before *infer.Rulebook, roles []infer.Role) (c change, differ bool) {
	namespace, after := now.namespace, now.book
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
func causes(namespace string, before, after *infer.Rulebook) []*inferencev1.RuleKey {
	rules := map[string]infer.Judged{}
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
func (h *Hub) snapshot(namespace string) (rows iter.Seq[*inferencev1.Inference], number uint64, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	shown, number := maps.Clone(h.shown), h.last
	return func(yield func(*inferencev1.Inference) bool) {
		for _, name := range slices.Sorted(maps.Keys(shown)) {
			if namespace != "" && namespace != name {
				continue
			}
			for parent := range shown[name].Parents() {
				if !yield(inference(name, parent, shown[name])) {
					return
				}
			}
		}
	}, number, h.shown != nil
}

// after lists the changes after a number, and gives the channel that tells of the next.
func (h *Hub) after(number uint64) (changes []change, last uint64, news <-chan struct{}, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch oldest := h.last - uint64(len(h.log)); {
	case h.ended:
		return nil, 0, nil, errEnded
	case number < oldest || number > h.last:
		return nil, 0, nil, errTooOld
	default:
		return slices.Clone(h.log[number-oldest:]), h.last, h.news, nil
	}
}

// token names a change, so that a stream can go on after it.
func (h *Hub) token(number uint64) string { return fmt.Sprintf("%s.%d", h.id, number) }

// parse is the inverse of token.
func (h *Hub) parse(token string) (uint64, error) {
	id, text, ok := strings.Cut(token, ".")
	number, err := strconv.ParseUint(text, 10, 64)
	switch {
	case !ok || err != nil:
		return 0, errNoToken
	case id != h.id:
		return 0, errTooOld
	}
	return number, nil
}
