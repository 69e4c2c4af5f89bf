// Package verify compares objects with the API server before an action that cannot be undone or that sends a
// credential. Such an action deletes an OpenFGA store or an entity of OpenSearch, adopts a store, reads a Secret, or
// connects to a server. It also compares the answers to a service's own writes.
//
// A grant needs no such read: NATS is trusted as Kubernetes trusts etcd, and barriers bound the age of an informer.
// The package caches nothing.
package verify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

// ErrContradicted means that the API server and the stream disagree about an object, or that the API server cannot
// return it. The error counts as unavailable, because the watcher corrects the stream.
var ErrContradicted = errors.New("the API server returns another state of it than the stream")

// Verifier compares objects of one cluster with its API server.
type Verifier struct {
	cluster      string
	api          objectReader
	view         *informer.Informer
	log          *slog.Logger
	contradicted *prometheus.CounterVec
}

// objectReader reads from the API server.
type objectReader interface {
	ReadNewest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error)
}

// New returns a verifier and registers its metric.
func New(v *informer.Informer, api objectReader, cluster string, log *slog.Logger, metrics prometheus.Registerer) *Verifier {
	r := &Verifier{
		cluster: cluster, api: api, view: v, log: log,
		contradicted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "entail_contradicted_total", Help: "Reads in which the API server returned another state of an object than the stream has.",
		}, []string{"resource"}),
	}
	metrics.MustRegister(r.contradicted)
	v.OnLoaded(func() { // A rate shows the first increase only if the counter already exists.
		for _, kind := range v.Kinds() {
			r.contradicted.WithLabelValues(kind.Resource)
		}
	})
	return r
}

// Verify reads each object once and returns nil if the API server returns the expected states. If it returns another
// state, the informer is behind or the stream is wrong. Verify then stores the returned state in the informer and
// returns [reconcile.ErrStale].
func (r *Verifier) Verify(ctx context.Context, expected ...ExpectedState) error {
	for _, e := range expected {
		if err := r.verifyExpected(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

func (r *Verifier) verifyExpected(ctx context.Context, e ExpectedState) error {
	held, err := e.held()
	if err != nil {
		return err
	}
	kind, ok := kinds.ByResource(e.change.Key.GroupResource)
	if !ok || e.change.Key.Cluster != r.cluster {
		return r.contradictionError(e.change)
	}
	if e.change.Version == kind.FallbackVersion && kind.FallbackVersion != "" {
		kind.Version = kind.FallbackVersion
	}
	now, err := r.api.ReadNewest(ctx, kind, e.change)
	if err != nil {
		return fmt.Errorf("reading %s: %w", e.change.Key, err)
	}
	now = r.view.WithCurrentEpoch(now)
	if is, err := e.read(now); err != nil || is == held {
		return err
	}
	if !now.Deleted && !now.IsNewerThan(e.change) {
		r.warnContradicted(ctx, e.change)
	}
	if err := r.view.ApplyAuthoritative(ctx, e.change, now); err != nil {
		return fmt.Errorf("storing %s: %w", now.Key, err)
	}
	return fmt.Errorf("%s: %w", now.Key, reconcile.ErrStale)
}

// VerifyWriteAnswer compares the API server's answer to a write with the state from which the write was decided. It
// returns [reconcile.ErrStale] if the declared fields differ. The informer must already hold the answer.
func (r *Verifier) VerifyWriteAnswer(ctx context.Context, e ExpectedState, answer event.Change) error {
	held, err := e.held()
	if err != nil {
		return err
	}
	is, err := e.read(answer)
	if err != nil || is.declared == held.declared {
		return err
	}
	r.warnContradicted(ctx, e.change)
	return fmt.Errorf("%s: %w", e.change.Key, reconcile.ErrStale)
}

func (r *Verifier) warnContradicted(ctx context.Context, held event.Change) {
	r.log.WarnContext(ctx, "the API server contradicts the stream; planning again", slog.Any("error", r.contradictionError(held)))
}

func (r *Verifier) contradictionError(held event.Change) error {
	r.contradicted.WithLabelValues(held.Key.Resource).Inc()
	return fault.Unavailable(fmt.Errorf("%s: %w", held.Key, ErrContradicted))
}
