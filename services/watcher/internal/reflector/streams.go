package reflector

import (
	"context"
	"errors"
	"time"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/topology"
)

// settling bounds the time that a server takes to delete a stream.
const settling = time.Second

// ensureStreamID returns the ID of the stream of changes. It creates the stream if none exists.
func (r *reflector) ensureStreamID(ctx context.Context) (string, error) {
	streamID, err := r.cfg.Publisher.StreamID(ctx)
	if !errors.Is(err, publish.ErrNoMessage) {
		return streamID, err
	}
	if err := r.repairStreams(ctx); err != nil {
		return "", err
	}
	return r.cfg.Publisher.StreamID(ctx)
}

// repairStreams gives every stream the configuration of package topology. No other code does.
func (r *reflector) repairStreams(ctx context.Context) error {
	r.restoring.Lock()
	defer r.restoring.Unlock()
	wrong, err := r.compareStreamConfigs(ctx)
	errs := []error{err}
	for _, d := range wrong {
		errs = append(errs, r.repairStream(ctx, d))
	}
	err = errors.Join(errs...)
	r.restored = r.restored || err == nil
	return err
}

// compareStreamConfigs lists the streams to restore. A stream must be missing for a while. A server that creates a
// stream while it deletes one of the same name mixes up their files, and acknowledges nothing any more.
func (r *reflector) compareStreamConfigs(ctx context.Context) ([]topology.StreamDifference, error) {
	differences, err := r.cfg.Publisher.CompareStreams(ctx, r.cfg.StreamReplicas)
	for _, d := range differences {
		if d.Missing && backoff.Sleep(ctx, settling) {
			differences, err = r.cfg.Publisher.CompareStreams(ctx, r.cfg.StreamReplicas)
			break
		}
	}
	for _, d := range differences {
		if d.Replicas > 0 && !r.copies[d.Stream] {
			r.copies[d.Stream] = true
			r.cfg.Log.WarnContext(ctx, "a stream has more copies than --stream-replicas; they are kept",
				"stream", d.Stream, "copies", d.Replicas, "stream_replicas", r.cfg.StreamReplicas)
		}
	}
	return differences, err
}

// repairStream restores one stream. Another configuration may have lost messages. If those were changes or markers, all
// is compared again.
func (r *reflector) repairStream(ctx context.Context, d topology.StreamDifference) error {
	if !d.NeedsRepair() {
		return nil
	}
	doubtful := !d.Missing && (d.Stream == topology.Changes || d.Stream == topology.Sync)
	if doubtful {
		r.requireFullRelist(errRestored)
	}
	if err := r.cfg.Publisher.RepairStream(ctx, d); err != nil {
		return err
	}
	r.reportRepairedStream(ctx, d)
	if doubtful { // The sweeps for the first doubt may have begun before.
		r.requireFullRelist(errRestored)
	}
	return nil
}

// reportRepairedStream logs and counts a restored stream. Creation at the first start is only logged.
func (r *reflector) reportRepairedStream(ctx context.Context, d topology.StreamDifference) {
	if d.Missing && !r.restored {
		r.cfg.Log.InfoContext(ctx, "stream created", "stream", d.Stream)
		return
	}
	r.cfg.Metrics.restored.WithLabelValues(d.Stream).Inc()
	if !d.Missing {
		r.cfg.Log.WarnContext(ctx, "stream was changed by others and is restored", "stream", d.Stream, "differed_in", d.Fields)
		return
	}
	r.cfg.Log.WarnContext(ctx, "stream was deleted and is created again; dead letters in it are lost", "stream", d.Stream)
}

// restartRelist starts another sweep of the kind, because the stream may have lost something. No barrier follows before
// the marker of that sweep. A sweep in progress does not write its marker.
func (k *kindReflector) restartRelist() {
	k.mu.Lock()
	k.doubted, k.sweep = true, nil
	restart := k.restart
	k.mu.Unlock()
	restart(errAgain)
}
