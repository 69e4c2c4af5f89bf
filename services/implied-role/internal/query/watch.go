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
	w := &inferenceWatch{server: s, namespace: r.GetNamespace(), out: to.Send}
	err := rpc.IncompleteError(s.cfg.Complete())
	if err == nil {
		err = s.checkNamespace(ctx, r.GetNamespace())
	}
	if err != nil {
		return err
	}
	err = w.resumeOrSendSnapshot(r.GetResumeToken())
	for err == nil && ctx.Err() == nil {
		err = w.sendNextChanges(ctx)
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

// inferenceWatch is one watch.
type inferenceWatch struct {
	server    *Server
	namespace string
	// number is the last change that was sent completely.
	number uint64
	out    func(*inferencev1.WatchInferencesResponse) error
}

// resumeOrSendSnapshot resumes after the token, or sends a snapshot if the token is empty.
func (w *inferenceWatch) resumeOrSendSnapshot(token string) (err error) {
	if token != "" {
		w.number, err = w.server.cfg.Changes.parseResumeToken(token)
		return err
	}
	if err := rpc.IncompleteError(w.server.cfg.Complete()); err != nil {
		return err
	}
	revision := w.server.cfg.Revision()
	rows, number, ok := w.server.cfg.Changes.snapshotRows(w.namespace)
	if !ok {
		return connect.NewError(connect.CodeUnavailable, errors.New("the service has just read everything; try again"))
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
	return w.sendWithResumeToken(&inferencev1.WatchInferencesResponse{Type: inferencev1.WatchInferencesResponse_TYPE_SNAPSHOT_END})
}

// sendNextChanges sends the next changes, then waits for news. It sends a bookmark if none arrive within bookmarkEvery.
func (w *inferenceWatch) sendNextChanges(ctx context.Context) error {
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
		return w.sendWithResumeToken(&inferencev1.WatchInferencesResponse{Type: inferencev1.WatchInferencesResponse_TYPE_BOOKMARK})
	}
}

// sendChange sends a change, in parts if it is large. A client that is disconnected before the last part receives all
// parts again, because only the last one moves the resume token.
func (w *inferenceWatch) sendChange(c namespaceChange) error {
	for w.namespace == "" || w.namespace == c.namespace {
		m := &inferencev1.WatchInferencesResponse{Type: inferencev1.WatchInferencesResponse_TYPE_CHANGE}
		m.Upserted, m.Removed = toMessagesThatFit(c.upserted, maxAnswer, unchangedMessage), toMessagesThatFit(c.removed, maxAnswer, unchangedMessage)
		c.upserted, c.removed = c.upserted[len(m.GetUpserted()):], c.removed[len(m.GetRemoved()):]
		if len(c.upserted)+len(c.removed) == 0 {
			w.number, m.Causes = c.number, c.causes
			return w.sendWithResumeToken(m)
		}
		if err := w.sendWithResumeToken(m); err != nil {
			return err
		}
	}
	w.number = c.number
	return nil
}

func unchangedMessage[M any](message M) M { return message }

// sendWithResumeToken sends a message with a resume token.
func (w *inferenceWatch) sendWithResumeToken(m *inferencev1.WatchInferencesResponse) error {
	m.ResumeToken, m.Revision, m.Synced = w.server.cfg.Changes.formatResumeToken(w.number), w.server.cfg.Revision(), w.server.cfg.Complete() == nil
	return w.out(m)
}
