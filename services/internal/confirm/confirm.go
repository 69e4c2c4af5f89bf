// Package confirm asks the API server whether objects are as the bus tells: whoever can write to the bus
// could tell of objects that nobody declared, so nothing is given on its word alone.
package confirm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/utils/lru"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
	"github.com/entail-dev/entail/services/internal/view"
)

// ErrContradicted means that the API server says otherwise of an object than the bus, or can say nothing of it. It is
// unavailable: where the view cannot be corrected, the true message is waited for.
var ErrContradicted = errors.New("the API server says otherwise of it than the bus")

// maxConfirmed bounds of how many objects it is kept what the API server said. What is forgotten is asked again.
const maxConfirmed = 65536

// Confirmer knows what the API server itself has said of objects, in answers to our own writes as a rule:
// nothing is given on the word of the bus alone.
type Confirmer struct {
	cluster string
	api     objects
	view    *view.View
	log     *slog.Logger
	// known is what was [heard] of objects, by key.
	known        *lru.Cache
	bulk         bulk
	contradicted *prometheus.CounterVec
}

// heard is what the API server said of an object.
type heard struct {
	essence

	// asked says that it answered a question, and not a write of ours.
	asked bool
}

// objects is what is needed of the API server.
type objects interface {
	Newest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error)
}

// New makes one that has heard of nothing.
func New(v *view.View, api objects, cluster string, log *slog.Logger, metrics prometheus.Registerer) *Confirmer {
	c := &Confirmer{
		cluster: cluster, api: api, view: v, log: log, known: lru.New(maxConfirmed),
		contradicted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_contradicted_total", Help: "Times that the API server said otherwise of an object than the bus.",
		}, []string{"resource"}),
	}
	metrics.MustRegister(c.contradicted)
	v.OnLoad(func() { // An increase shows only where there was a number before.
		for _, kind := range v.Kinds() {
			c.contradicted.WithLabelValues(kind.Resource)
		}
	})
	v.OnChange(func(k event.Key) {
		c.bulk.changed(k)
		if !v.Lives(k) || c.heard(k).asked {
			c.known.Remove(k) // What we do not write could be told to be again what it was when we asked.
		}
	})
	return c
}

func (c *Confirmer) heard(k event.Key) heard {
	kept, _ := c.known.Get(k)
	of, _ := kept.(heard)
	return of
}

// Confirm is nil once the API server has said of all objects what is stated of them. Where it says otherwise, because the bus
// has not told yet or tells lies, that is in the view, and the error is [reconcile.ErrStale].
func (c *Confirmer) Confirm(ctx context.Context, statements ...Statement) error {
	open, err := c.unknown(statements)
	if err != nil {
		return err
	}
	c.want(open)
	for _, o := range open {
		if err := c.confirm(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// opened is a statement of which the API server has not said that it is so.
type opened struct {
	says   Statement
	stated essence
}

// unknown are the statements that the API server has not confirmed yet, of each state of an object one.
func (c *Confirmer) unknown(statements []Statement) (all []opened, err error) {
	type state struct {
		key                 event.Key
		uid, epoch, version string
		deleted             bool
	}
	seen := make(map[state]bool, len(statements))
	for _, s := range statements {
		is := state{s.change.Key, s.change.UID, s.change.Epoch, s.change.ResourceVersion, s.change.Deleted}
		if s.read != nil && seen[is] {
			continue
		}
		seen[is] = true
		o, err := open(s)
		if err != nil {
			return nil, err
		}
		if !c.knows(o) {
			all = append(all, o)
		}
	}
	return all, nil
}

func open(s Statement) (opened, error) {
	stated, err := s.is()
	return opened{s, stated}, err
}

// knows says whether the API server has said what is stated.
func (c *Confirmer) knows(o opened) bool {
	return o.stated != (essence{}) && c.heard(o.says.change.Key).essence == o.stated
}

// ConfirmRecord is [Confirmer.Confirm] for who goes on with what we have recorded in an object, whatever others declare.
func (c *Confirmer) ConfirmRecord(ctx context.Context, s Statement) error {
	o, err := open(s)
	if err != nil || o.stated.recorded == (essence{}).recorded {
		return err
	}
	if c.heard(s.change.Key).recorded == o.stated.recorded {
		return nil
	}
	return c.confirm(ctx, o)
}

func (c *Confirmer) confirm(ctx context.Context, o opened) error {
	if c.knows(o) || c.list(ctx, o.says) && c.knows(o) {
		return nil
	}
	s := o.says
	now, err := c.newest(ctx, s.change)
	if err != nil {
		return &UnreadError{s.change, err}
	}
	is, err := c.hear(s, now, true)
	if err != nil || is == o.stated {
		return err
	}
	if !now.Deleted && !now.NewerThan(s.change) {
		c.log.WarnContext(ctx, "planned again by what the API server says", slog.Any("error", c.contradict(s.change)))
	}
	if err := c.view.Correct(ctx, s.change, now); err != nil {
		return fmt.Errorf("taking in %s: %w", now.Key, err)
	}
	return fmt.Errorf("%s: %w", now.Key, reconcile.ErrStale)
}

// UnreadError is the error of an object that the API server did not return.
type UnreadError struct {
	Change event.Change
	Err    error
}

func (e *UnreadError) Error() string { return fmt.Sprintf("reading %s: %v", e.Change.Key, e.Err) }

// Unwrap returns why.
func (e *UnreadError) Unwrap() error { return e.Err }

// Readable returns nil if the API server lets this service read an object, whether or not it is there.
func (c *Confirmer) Readable(ctx context.Context, o event.Change) error {
	_, err := c.newest(ctx, o)
	return err
}

// newest asks the API server. Of other clusters it knows nothing.
func (c *Confirmer) newest(ctx context.Context, o event.Change) (event.Change, error) {
	kind, ok := kinds.Of(o.Key.GroupResource)
	if o.Key.Target { // It may be served in another version than when it was told of.
		served := c.view.Observation(o.Key.Cluster, o.Key.GroupResource).Version
		kind, ok = kinds.Target(o.Key.GroupResource, cmp.Or(served, o.Version), o.Kind), true
	}
	if !ok || o.Key.Cluster != c.cluster {
		return o, c.contradict(o)
	}
	if o.Version == kind.Older && kind.Older != "" {
		kind.Version = kind.Older
	}
	now, err := c.api.Newest(ctx, kind, o)
	return c.view.Dated(now), err
}

// Hear remembers what the API server answered to a write of ours.
func (c *Confirmer) Hear(s Statement, now event.Change) (essence, error) {
	return c.hear(s, now, false)
}

func (c *Confirmer) hear(s Statement, now event.Change, asked bool) (essence, error) {
	is, err := s.read(now)
	if err != nil || is == (essence{}) {
		c.known.Remove(s.change.Key)
		return is, err
	}
	c.known.Add(s.change.Key, heard{is, asked})
	return is, nil
}

// Learn remembers what the API server answered to a write that it took only if nobody had written since what is
// stated. The view has it; where others declare something else in it, the error is [reconcile.ErrStale].
func (c *Confirmer) Learn(ctx context.Context, s Statement, now event.Change) error {
	stated, err := s.is()
	if err != nil {
		return err
	}
	is, err := c.Hear(s, now)
	if err != nil || is.declared == stated.declared {
		return err
	}
	c.log.WarnContext(ctx, "planned again by what the API server says", slog.Any("error", c.contradict(s.change)))
	return fmt.Errorf("%s: %w", s.change.Key, reconcile.ErrStale)
}

// Known is of how many objects it is remembered what the API server said.
func (c *Confirmer) Known() int { return c.known.Len() }

func (c *Confirmer) contradict(o event.Change) error {
	c.contradicted.WithLabelValues(o.Key.Resource).Inc()
	return fault.Unavailable(fmt.Errorf("%s: %w", o.Key, ErrContradicted))
}
