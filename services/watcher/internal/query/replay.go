package query

import (
	"context"
	"errors"
	"slices"

	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/publish"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/source"
)

// Replay publishes the present state of an object again. It deletes the replayed dead letter; if the object fails
// again, a new letter appears. If the object does not exist, Replay removes a malformed message about it and returns
// sequence 0.
func (s *Server) Replay(ctx context.Context, r *syncv1.ReplayRequest) (*syncv1.ReplayResponse, error) {
	key, err := s.requestedReplayKey(ctx, r)
	if err != nil {
		return nil, err
	}
	ack, err := s.republishObject(ctx, key)
	if err != nil {
		return nil, err
	}
	if id := r.GetDeadLetterId(); id != 0 {
		if err := s.cfg.Trail.DiscardDeadLetter(ctx, id); err != nil {
			return nil, err
		}
	}
	return &syncv1.ReplayResponse{Ref: key.ToObjectRef(), Sequence: ack.Sequence}, nil
}

// requestedReplayKey returns the key of the object to replay.
func (s *Server) requestedReplayKey(ctx context.Context, r *syncv1.ReplayRequest) (event.Key, error) {
	id := r.GetDeadLetterId()
	if id == 0 {
		key := event.KeyFromRef(r.GetRef())
		if key.Cluster == "" {
			key.Cluster = s.cfg.Cluster
		}
		if key.Resource == "" || key.Name == "" {
			return event.Key{}, rpc.InvalidError("ref lacks a resource or a name")
		}
		return key, nil
	}
	letter, err := s.readDeadLetter(ctx, id)
	if err != nil {
		return event.Key{}, err
	}
	key, _, err := topology.ParseChangeOrTombstoneSubject(letter.Subject)
	if err != nil {
		return event.Key{}, rpc.InvalidError("dead letter %d came from subject %q, which names no object: discard it", id, letter.Subject)
	}
	return key, nil
}

func (s *Server) republishObject(ctx context.Context, key event.Key) (publish.Ack, error) {
	i := slices.IndexFunc(s.cfg.Kinds, func(kind kinds.Kind) bool { return kind.GroupResource == key.GroupResource })
	if key.Cluster != s.cfg.Cluster || i < 0 {
		return publish.Ack{}, rpc.InvalidError("this watcher does not follow %s of cluster %q; it follows cluster %q", key, key.Cluster, s.cfg.Cluster)
	}
	last, lastErr := s.cfg.Publisher.LastChange(ctx, key)
	malformed := errors.Is(lastErr, publish.ErrMalformed)
	if lastErr != nil && !malformed && !errors.Is(lastErr, publish.ErrNoMessage) {
		return publish.Ack{}, lastErr
	}
	present, err := s.cfg.Source.Get(ctx, s.cfg.Kinds[i], key.Namespace, key.Name)
	switch {
	case err == nil:
		if order, ok := event.CompareEpochs(last.Epoch, present.Epoch); ok && order > 0 {
			present.Epoch = last.Epoch // The source cannot detect that the cluster's history was rewound.
		}
	case !errors.Is(err, source.ErrNotFound):
		return publish.Ack{}, fault.Unavailable(err)
	case malformed:
		if err := s.cfg.Publisher.RemoveMessage(ctx, last.Sequence); err != nil {
			return publish.Ack{}, err
		}
		return publish.Ack{}, nil
	case lastErr != nil:
		return publish.Ack{}, rpc.NotFoundError("%s does not exist, and nothing was published about it", key)
	default:
		present = source.Object{Change: last.Change, ContentHash: last.ContentHash}
	}
	if lastErr == nil && last.Change.IsNewerThan(present.Change) && !present.IsNewerThan(last.Change) {
		return publish.Ack{Entry: last.Entry, Stale: true}, nil
	}
	expected := last.Sequence
	if lastErr == nil && (last.UID != present.UID || last.Epoch != present.Epoch) {
		expected = 0
	}
	return s.cfg.Publisher.PublishChange(ctx, present.Change, expected, publish.PublicationOptions{
		Replay: true, ContentHash: present.ContentHash, MetadataOnly: s.cfg.Kinds[i].MetadataOnly, TTL: s.cfg.TombstoneTTL,
	})
}
