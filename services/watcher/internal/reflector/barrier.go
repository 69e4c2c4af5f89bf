package reflector

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/timestamppb"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/barrier"
	"github.com/entail-dev/entail/services/internal/publish"
)

const (
	// opening is how long a watch must have been open before it counts: one that is refused ends at once.
	opening = 2 * time.Second
	// maxSilence is how long a watch that has sent bookmarks may send nothing: the API server sends one about every
	// minute.
	maxSilence = 90 * time.Second
	// maxUnread bounds the time without an answer of the API server to a read. After this time barriers stop.
	maxUnread = 2 * time.Second
	// firstBarriers is the number of attempts in one check interval while the first barrier of a run is due.
	firstBarriers = 10
)

// ErrDeposed ends a term because the leader of a later term writes barriers.
var ErrDeposed = errors.New("a later leader writes barriers")

// errUnread is the reason why no barrier is written while the API server does not answer.
var errUnread = errors.New("the API server does not answer reads on the transport of the watches")

// errRestored is the cause of a sweep of all kinds: the stream may lack what it held before.
var errRestored = errors.New("the stream was restored, purged or truncated, or another client wrote a barrier")

// writeBarriers writes barriers until ctx ends or another leader has replaced this one. It writes none while the API
// server does not answer reads on the transport of the watches. The Lease shows less: its requests may take another
// connection.
func (r *reflector) writeBarriers(ctx context.Context) error {
	for {
		pause := r.cfg.CheckInterval
		if !r.barriers.HasAcceptedBarrier() {
			pause /= firstBarriers
		}
		if !backoff.Sleep(ctx, pause) {
			return nil
		}
		err := r.writeBarrier(ctx)
		if errors.Is(err, ErrDeposed) {
			return err
		}
		if ctx.Err() == nil {
			r.reportBarrier(ctx, err)
		}
	}
}

// reportBarrier records the reason why no barrier was written; nil means that one was written. It logs a reason that
// lasts, each further reason, and the end.
func (r *reflector) reportBarrier(ctx context.Context, cause error) {
	lasts := r.cfg.Health.recordBarrier(time.Now(), cause)
	switch {
	case cause == nil && r.unwritten != "":
		r.cfg.Log.InfoContext(ctx, "barriers are written again")
		r.unwritten = ""
	case lasts > unacknowledged && cause.Error() != r.unwritten:
		r.cfg.Log.WarnContext(ctx, "no barrier is written; services grant nothing until one follows", "for", lasts, "cause", cause)
		r.unwritten = cause.Error()
	}
}

// beginBarrierRun returns the barrier that the first one of the run will expect. It is nil if there is none.
func (r *reflector) beginBarrierRun(ctx context.Context) (*eventv1.Barrier, error) {
	r.cfg.Publisher.ResetLostMessages()
	newest, sequence, err := r.cfg.Publisher.LastBarrier(ctx, r.cfg.Cluster)
	if err != nil && !isMissingOrMalformed(err) {
		return nil, err
	}
	if r.barriers == nil {
		r.barriers = barrier.NewSequencer(r.cfg.Term, newest, sequence)
	} else {
		r.barriers.BeginRun(newest, sequence)
	}
	return newest, nil
}

// writeBarrier writes a barrier, unless the stream may lack something. The error is then the reason. After a doubt,
// writeBarrier begins another run.
func (r *reflector) writeBarrier(ctx context.Context) error {
	if r.cfg.Publisher.MayHaveLostMessages() {
		r.requireFullRelist(errRestored)
	}
	if cause := r.doubt.Swap(nil); cause != nil {
		if err := r.beginFullRelist(ctx, cause); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	b, err := r.buildNextBarrier(time.Now())
	if err == nil && r.cfg.Health.APIServerSilence() > maxUnread {
		err = errUnread
	}
	if err != nil {
		return errors.Join(err, r.writeHalt(ctx))
	}
	sequence, err := r.cfg.Publisher.PublishBarrier(ctx, b, r.barriers.StampNext(b))
	switch {
	case err == nil:
		r.barriers.RecordAccepted(sequence)
	case errors.Is(err, publish.ErrUnexpectedBarrier):
		return r.handleRefusedBarrier(ctx)
	}
	return err
}

// writeHalt announces a halt while no barrier of the run can be written. It expects no barrier, so that no other client
// can prevent it.
func (r *reflector) writeHalt(ctx context.Context) error {
	if r.cfg.Halt.Reason() == "" || r.barriers.HasAcceptedBarrier() {
		return nil
	}
	b := &eventv1.Barrier{Cluster: r.cfg.Cluster, Term: r.cfg.Term, WrittenAt: timestamppb.Now()}
	r.cfg.Halt.StampBarrier(b)
	sequence, err := r.cfg.Publisher.PublishHaltBarrier(ctx, b)
	if err == nil {
		r.barriers.BeginRun(nil, sequence)
	}
	return err
}

// handleRefusedBarrier decides by the newest barrier on the stream, and by the Lease.
func (r *reflector) handleRefusedBarrier(ctx context.Context) error {
	current, err := r.cfg.LeaseTerm(ctx)
	if err != nil {
		return err
	}
	newest, sequence, err := r.cfg.Publisher.LastBarrier(ctx, r.cfg.Cluster)
	if err != nil && !isMissingOrMalformed(err) {
		return err
	}
	switch r.barriers.HandleRefusal(newest, sequence, current) {
	case barrier.Deposed:
		return ErrDeposed
	case barrier.Forged:
		r.cfg.Metrics.corrections.WithLabelValues(causeBarrier).Inc()
		r.cfg.Log.ErrorContext(ctx, "another client wrote a barrier: the watcher's NATS account may be stolen",
			"sequence", sequence, "term", newest.GetTerm(), "lease_term", current)
		r.countForgeryTowardHalt("a barrier")
		r.requireFullRelist(errRestored)
		return errors.Join(errRestored, r.writeHalt(ctx))
	case barrier.Doubt:
		r.requireFullRelist(errRestored)
		return errRestored
	default:
		return nil
	}
}

// requireFullRelist requires that everything is compared with the API server before the next barrier.
func (r *reflector) requireFullRelist(cause error) {
	r.doubt.CompareAndSwap(nil, &fullRelistCause{cause})
}

// fullRelistCause is the reason why everything must be compared again.
type fullRelistCause struct{ cause error }

// beginFullRelist withdraws all markers, sweeps all kinds and begins another run of barriers. No barrier follows before
// every kind has its marker again. After an error the doubt remains.
func (r *reflector) beginFullRelist(ctx context.Context, why *fullRelistCause) error {
	if err := r.withdrawMarkers(ctx); err != nil {
		r.doubt.CompareAndSwap(nil, why)
		return err
	}
	r.cfg.Metrics.doubts.Inc()
	r.cfg.Log.WarnContext(ctx, "the stream is compared with the API server again", "cause", why.cause)
	r.targets.forgetMarkers()
	for _, k := range r.allKindReflectors() {
		k.restartRelist()
	}
	return nil
}

// withdrawMarkers begins another run of barriers, and removes the markers of all kinds.
func (r *reflector) withdrawMarkers(ctx context.Context) error {
	if _, err := r.beginBarrierRun(ctx); err != nil {
		return err
	}
	for _, k := range r.allKindReflectors() {
		if err := k.cfg.Publisher.DeleteMarker(ctx, k.cfg.Cluster, k.kind.GroupResource); err != nil {
			return err
		}
	}
	return nil
}

// probeAPIServer reads again and again from the API server, by the transport of the watches, until ctx ends.
func (r *reflector) probeAPIServer(ctx context.Context) {
	for backoff.Sleep(ctx, r.cfg.CheckInterval/2) {
		began := time.Now()
		attempt, cancel := context.WithTimeout(ctx, maxUnread)
		_, err := r.cfg.Source.ClusterUID(attempt)
		cancel()
		if isAPIServerResponse(err) {
			r.cfg.Health.recordAPIServerRead(began)
		}
	}
}

// isAPIServerResponse reports whether the API server answered a read, be it with a refusal.
func isAPIServerResponse(err error) bool {
	status := apierrors.APIStatus(nil)
	return err == nil || errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError
}

// buildNextBarrier returns the barrier for a time. It returns an error if a kind is not compared with the API server
// yet. It also returns an error if a target kind is late and its marker does not report that yet.
func (r *reflector) buildNextBarrier(now time.Time) (*eventv1.Barrier, error) {
	oldest, versions, epoch := now, map[string]string{}, r.epoch.currentEpoch()
	for _, k := range r.kinds {
		if k.kind.ReferencedOnly { // No decision depends on the presence of these.
			continue
		}
		version, current := k.barrierProgress(now)
		if current.IsZero() {
			return nil, fmt.Errorf("%s is not compared with the API server yet", k.kindLabel())
		}
		if current.Before(oldest) {
			oldest = current
		}
		if k.currentEpoch() == epoch {
			versions[k.kindLabel()] = version
		}
	}
	if err := r.targets.lateKindErr(now); err != nil {
		return nil, err
	}
	if !r.barriers.HasAcceptedBarrier() {
		if err := r.targets.uncomparedKindErr(); err != nil {
			return nil, err
		}
	}
	b := &eventv1.Barrier{
		Cluster: r.cfg.Cluster, Epoch: epoch, ResourceVersions: versions, Behind: durationpb.New(now.Sub(oldest)), WrittenAt: timestamppb.New(now),
	}
	r.cfg.Halt.StampBarrier(b)
	return b, nil
}

// barrierProgress returns the API server's newest version, and the time up to which the stream holds all its changes.
// The time is zero before the first snapshot, and after a doubt until the next one.
func (k *kindReflector) barrierProgress(now time.Time) (version string, at time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.stream == "" || k.doubted {
		return "", time.Time{}
	}
	at = k.watchCompleteUntil(now)
	if k.opened.IsZero() || now.Sub(k.opened) < opening {
		at = k.closed
	}
	return k.seen, k.limitToOldestUnpublished(at)
}

// watchCompleteUntil returns up to when an open watch is known to have sent everything: the last message of a watch
// that is silent. The caller holds the lock.
func (k *kindReflector) watchCompleteUntil(now time.Time) time.Time {
	if k.isWatchSilent(now) {
		return k.heard
	}
	return now
}

// isWatchSilent reports whether a watch has sent nothing for longer than bookmarks allow; the caller holds the lock.
func (k *kindReflector) isWatchSilent(now time.Time) bool {
	return k.bookmarked && !k.opened.IsZero() && now.Sub(k.heard) > maxSilence
}

// limitToOldestUnpublished returns at, or the time of the oldest unpublished change if that is earlier.
func (k *kindReflector) limitToOldestUnpublished(at time.Time) time.Time {
	for _, s := range k.waiting {
		if s.ObservedAt.Before(at) {
			at = s.ObservedAt
		}
	}
	return at
}

// markWatchOpen records that a watch is open, which yields every change from now on. The returned function records its
// end.
func (k *kindReflector) markWatchOpen() (end func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.opened = time.Now()
	if k.closed.IsZero() {
		k.closed = k.opened
	}
	return func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if now := time.Now(); now.Sub(k.opened) >= opening {
			k.closed = k.watchCompleteUntil(now)
		}
		k.opened = time.Time{}
	}
}
