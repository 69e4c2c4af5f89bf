// Package confirm compares objects with the API server before a service acts on them.
//
// Every client with write access to NATS could publish forged objects, so no service grants anything from the stream
// alone. A [Confirmer] stores fingerprints of the states that the API server returned, so that most objects are read
// only once. It detects differences but makes no decisions.
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
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

// ErrContradicted means that the API server returns another state of an object than the stream, or cannot return one.
// It counts as an outage: where the view cannot be corrected, the service waits for the true change.
var ErrContradicted = errors.New("the API server says otherwise of it than the bus")

// maxConfirmed bounds the stored fingerprints. Further objects are read each time.
const maxConfirmed = 65536

// Confirmer stores the states that the API server itself returned, mostly in answers to our own writes.
type Confirmer struct {
	cluster string
	api     objects
	view    *informer.Informer
	log     *slog.Logger
	// known maps each key to a [heard].
	known        *lru.Cache
	bulk         bulk
	contradicted *prometheus.CounterVec
}

// heard is the stored state of an object.
type heard struct {
	essence

	// asked means that the state is from a read, not from a write of ours.
	asked bool
}

// objects reads from the API server.
type objects interface {
	Newest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error)
}

// New returns a confirmer without stored states.
func New(v *informer.Informer, api objects, cluster string, log *slog.Logger, metrics prometheus.Registerer) *Confirmer {
	c := &Confirmer{
		cluster: cluster, api: api, view: v, log: log, known: lru.New(maxConfirmed),
		contradicted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_contradicted_total", Help: "Times that the API server said otherwise of an object than the bus.",
		}, []string{"resource"}),
	}
	metrics.MustRegister(c.contradicted)
	v.OnLoad(func() { // A rate shows an increase only if the counter existed before.
		for _, kind := range v.Kinds() {
			c.contradicted.WithLabelValues(kind.Resource)
		}
	})
	v.OnChange(func(k event.Key) {
		c.bulk.recordChange(k)
		if !v.HasLive(k) || c.lastSeen(k).asked {
			c.known.Remove(k) // Other writers change it, so a forged change could repeat an old answer.
		}
	})
	return c
}

func (c *Confirmer) lastSeen(k event.Key) heard {
	kept, _ := c.known.Get(k)
	of, _ := kept.(heard)
	return of
}

// Confirm returns nil once the API server has returned the stated state of all objects. Another state means that a
// change is still on its way or was forged. Confirm then stores the returned state in the view and returns
// [reconcile.ErrStale].
func (c *Confirmer) Confirm(ctx context.Context, statements ...Statement) error {
	open, err := c.unconfirmed(statements)
	if err != nil {
		return err
	}
	c.countRequested(open)
	for _, o := range open {
		if err := c.confirmState(ctx, o); err != nil {
			return err
		}
	}
	return nil
}

// opened is a statement with its fingerprint.
type opened struct {
	says   Statement
	stated essence
}

// unconfirmed returns the statements that are not confirmed yet, one for each state of an object.
func (c *Confirmer) unconfirmed(statements []Statement) (all []opened, err error) {
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
		o, err := openStatement(s)
		if err != nil {
			return nil, err
		}
		if !c.isConfirmed(o) {
			all = append(all, o)
		}
	}
	return all, nil
}

func openStatement(s Statement) (opened, error) {
	stated, err := s.is()
	return opened{s, stated}, err
}

// isConfirmed reports whether the API server has returned the stated state.
func (c *Confirmer) isConfirmed(o opened) bool {
	return o.stated != (essence{}) && c.lastSeen(o.says.change.Key).essence == o.stated
}

// ConfirmRecord confirms only our record in an object, whatever its declared fields are. It serves work that continues
// from the record.
func (c *Confirmer) ConfirmRecord(ctx context.Context, s Statement) error {
	o, err := openStatement(s)
	if err != nil || o.stated.recorded == (essence{}).recorded {
		return err
	}
	if c.lastSeen(s.change.Key).recorded == o.stated.recorded {
		return nil
	}
	return c.confirmState(ctx, o)
}

func (c *Confirmer) confirmState(ctx context.Context, o opened) error {
	if c.isConfirmed(o) || c.canList(ctx, o.says) && c.isConfirmed(o) {
		return nil
	}
	s := o.says
	now, err := c.readNewest(ctx, s.change)
	if err != nil {
		return &UnreadError{s.change, err}
	}
	is, err := c.recordAnswer(s, now, true)
	if err != nil || is == o.stated {
		return err
	}
	if !now.Deleted && !now.IsNewerThan(s.change) {
		c.log.WarnContext(ctx, "planned again by what the API server says", slog.Any("error", c.contradictView(s.change)))
	}
	if err := c.view.ApplyAuthoritative(ctx, s.change, now); err != nil {
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

func (e *UnreadError) Unwrap() error { return e.Err }

// Readable returns nil if this service may read an object at the API server, even if the object does not exist.
func (c *Confirmer) Readable(ctx context.Context, o event.Change) error {
	_, err := c.readNewest(ctx, o)
	return err
}

// readNewest reads an object from the API server. For an object of another cluster, which cannot be read, it returns
// [ErrContradicted].
func (c *Confirmer) readNewest(ctx context.Context, o event.Change) (event.Change, error) {
	kind, ok := kinds.Of(o.Key.GroupResource)
	if o.Key.Target { // The served version may have changed.
		served := c.view.Observation(o.Key.Cluster, o.Key.GroupResource).Version
		kind, ok = kinds.Target(o.Key.GroupResource, cmp.Or(served, o.Version), o.Kind), true
	}
	if !ok || o.Key.Cluster != c.cluster {
		return o, c.contradictView(o)
	}
	if o.Version == kind.Older && kind.Older != "" {
		kind.Version = kind.Older
	}
	now, err := c.api.Newest(ctx, kind, o)
	return c.view.WithCurrentEpoch(now), err
}

// Hear stores the API server's answer to a write of ours.
func (c *Confirmer) Hear(s Statement, now event.Change) (essence, error) {
	return c.recordAnswer(s, now, false)
}

func (c *Confirmer) recordAnswer(s Statement, now event.Change, asked bool) (essence, error) {
	is, err := s.read(now)
	if err != nil || is == (essence{}) {
		c.known.Remove(s.change.Key)
		return is, err
	}
	c.known.Add(s.change.Key, heard{is, asked})
	return is, nil
}

// Learn stores the answer to a write that required the stated version. The error is [reconcile.ErrStale] if the
// declared fields in the answer differ from the statement. The view already holds the answer.
func (c *Confirmer) Learn(ctx context.Context, s Statement, now event.Change) error {
	stated, err := s.is()
	if err != nil {
		return err
	}
	is, err := c.Hear(s, now)
	if err != nil || is.declared == stated.declared {
		return err
	}
	c.log.WarnContext(ctx, "planned again by what the API server says", slog.Any("error", c.contradictView(s.change)))
	return fmt.Errorf("%s: %w", s.change.Key, reconcile.ErrStale)
}

// Known returns the number of stored states.
func (c *Confirmer) Known() int { return c.known.Len() }

func (c *Confirmer) contradictView(o event.Change) error {
	c.contradicted.WithLabelValues(o.Key.Resource).Inc()
	return fault.Unavailable(fmt.Errorf("%s: %w", o.Key, ErrContradicted))
}
