package query

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/internal/rpc"
)

const (
	// rowsPerMessage bounds the rows in one message of a snapshot.
	rowsPerMessage = 100
	// bookmarkEvery is the interval of bookmarks on an idle stream.
	bookmarkEvery = 10 * time.Second
)

// WatchInferences implements InferenceService.
func (s *Server) WatchInferences(
	ctx context.Context, r *inferencev1.WatchInferencesRequest, to *connect.ServerStream[inferencev1.WatchInferencesResponse],
) error {
	w := &stream{server: s, namespace: r.GetNamespace(), out: to.Send}
	err := w.startStream(r.GetResumeToken())
	for err == nil && ctx.Err() == nil {
		err = w.followChanges(ctx)
	}
	switch {
	case errors.Is(err, errTooOld):
		return connect.NewError(connect.CodeOutOfRange, err)
	case errors.Is(err, errNoToken):
		return connect.NewError(connect.CodeInvalidArgument, err)
	case errors.Is(err, errEnded):
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return err
}

// stream is one watch.
type stream struct {
	server    *Server
	namespace string
	// number is the last change that was sent completely.
	number uint64
	out    func(*inferencev1.WatchInferencesResponse) error
}

// startStream resumes after the token, or sends a snapshot if the token is empty.
func (w *stream) startStream(token string) (err error) {
	if token != "" {
		w.number, err = w.server.cfg.Changes.parseToken(token)
		return err
	}
	if err := rpc.Incomplete(w.server.cfg.Complete()); err != nil {
		return err
	}
	revision := w.server.cfg.Revision()
	rows, number, ok := w.server.cfg.Changes.snapshotRows(w.namespace)
	if !ok {
		return connect.NewError(connect.CodeUnavailable, errors.New("the service has read everything a moment ago; try again"))
	}
	message := &inferencev1.WatchInferencesResponse{Type: inferencev1.WatchInferencesResponse_TYPE_SNAPSHOT, Revision: revision, Synced: true}
	bytes := 0
	for row := range rows {
		message.Upserted = append(message.Upserted, row)
		if bytes += proto.Size(row); bytes > maxAnswer || len(message.GetUpserted()) == rowsPerMessage {
			if err := w.out(message); err != nil {
				return err
			}
			message.Upserted, bytes = nil, 0
		}
	}
	if len(message.GetUpserted()) > 0 {
		if err := w.out(message); err != nil {
			return err
		}
	}
	w.number = number
	return w.sendMessage(&inferencev1.WatchInferencesResponse{Type: inferencev1.WatchInferencesResponse_TYPE_SNAPSHOT_END})
}

// followChanges sends the next changes, then waits for news. It sends a bookmark if none arrive within bookmarkEvery.
func (w *stream) followChanges(ctx context.Context) error {
	changes, last, news, err := w.server.cfg.Changes.changesAfter(w.number)
	if err != nil {
		return err
	}
	for _, c := range changes {
		if err := w.sendChange(c); err != nil {
			return err
		}
	}
	w.number = last
	select {
	case <-ctx.Done():
		return nil
	case <-news:
		return nil
	case <-time.After(bookmarkEvery):
		return w.sendMessage(&inferencev1.WatchInferencesResponse{Type: inferencev1.WatchInferencesResponse_TYPE_BOOKMARK})
	}
}

// sendChange sends a change, in parts if it is large. A client that is disconnected before the last part receives all
// parts again, because only the last one moves the resume token.
func (w *stream) sendChange(c change) error {
	for w.namespace == "" || w.namespace == c.namespace {
		m := &inferencev1.WatchInferencesResponse{Type: inferencev1.WatchInferencesResponse_TYPE_CHANGE}
		m.Upserted, m.Removed = fitMessages(c.upserted, maxAnswer, identity), fitMessages(c.removed, maxAnswer, identity)
		c.upserted, c.removed = c.upserted[len(m.GetUpserted()):], c.removed[len(m.GetRemoved()):]
		if len(c.upserted)+len(c.removed) == 0 {
			w.number, m.Causes = c.number, c.causes
			return w.sendMessage(m)
		}
		if err := w.sendMessage(m); err != nil {
			return err
		}
	}
	w.number = c.number
	return nil
}

func identity[M any](message M) M { return message }

// sendMessage sends a message with a resume token.
func (w *stream) sendMessage(m *inferencev1.WatchInferencesResponse) error {
	m.ResumeToken, m.Revision, m.Synced = w.server.cfg.Changes.resumeToken(w.number), w.server.cfg.Revision(), w.server.cfg.Complete() == nil
	return w.out(m)
}
