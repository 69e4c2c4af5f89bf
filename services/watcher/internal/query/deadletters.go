package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	syncv1 "github.com/entail-dev/entail/gen/entail/sync/v1"
	"github.com/entail-dev/entail/services/internal/nearest"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/watcher/internal/trail"
)

const defaultPageSize = 100

// ListDeadLetters lists dead letters, newest first. A page token holds the last letter of the previous page.
func (s *Server) ListDeadLetters(ctx context.Context, r *syncv1.ListDeadLettersRequest) (*syncv1.ListDeadLettersResponse, error) {
	token, seal, err := rpc.OpenPageToken(r)
	if err != nil {
		return nil, err
	}
	var before uint64
	if token != "" {
		if before, err = strconv.ParseUint(token, 10, 64); err != nil {
			return nil, rpc.InvalidError("the page token names no dead letter: %w", err)
		}
	}
	letters, next, err := s.cfg.Trail.ListDeadLetters(ctx, r.GetService(), before, cmp.Or(int(r.GetPageSize()), defaultPageSize))
	if err != nil {
		return nil, err
	}
	if err := checkServiceName(r.GetService()); err != nil && len(letters) == 0 && next == 0 {
		return nil, err
	}
	response := &syncv1.ListDeadLettersResponse{}
	for _, letter := range letters {
		response.DeadLetters = append(response.DeadLetters, toDeadLetterMessage(letter))
	}
	if next != 0 {
		response.NextPageToken = seal(strconv.FormatUint(next, 10))
	}
	return response, nil
}

// checkServiceName returns an error for the caller if no service has the name. An empty name means all services.
func checkServiceName(name string) error {
	var names []string
	for _, s := range slices.Concat(topology.DurableServices(), topology.ReaderServices()) {
		names = append(names, s.Name)
	}
	if name == "" || slices.Contains(names, name) {
		return nil
	}
	return rpc.NotFoundError("there is no service %q%s", name, nearest.Hint(name, "services", names))
}

// GetDeadLetter returns one letter with its message.
func (s *Server) GetDeadLetter(ctx context.Context, r *syncv1.GetDeadLetterRequest) (*syncv1.GetDeadLetterResponse, error) {
	letter, err := s.readDeadLetter(ctx, r.GetId())
	if err != nil {
		return nil, err
	}
	return &syncv1.GetDeadLetterResponse{DeadLetter: toDeadLetterMessage(letter), Data: letter.Data, ChangeJson: changeJSON(letter.Data)}, nil
}

// DiscardDeadLetter deletes a letter. It also removes the original message from the stream of changes if that is
// malformed.
func (s *Server) DiscardDeadLetter(ctx context.Context, r *syncv1.DiscardDeadLetterRequest) (*syncv1.DiscardDeadLetterResponse, error) {
	letter, err := s.readDeadLetter(ctx, r.GetId())
	if err != nil {
		return nil, err
	}
	removed := false
	if letter.Sequence != 0 {
		if removed, err = s.cfg.Publisher.RemoveMalformedMessage(ctx, letter.Subject, letter.Sequence); err != nil {
			return nil, err
		}
	}
	if err := s.cfg.Trail.DiscardDeadLetter(ctx, letter.ID); err != nil {
		return nil, err
	}
	return &syncv1.DiscardDeadLetterResponse{DeadLetter: toDeadLetterMessage(letter), MessageRemoved: removed}, nil
}

func (s *Server) readDeadLetter(ctx context.Context, id uint64) (trail.DeadLetter, error) {
	letter, err := s.cfg.Trail.GetDeadLetter(ctx, id)
	if errors.Is(err, trail.ErrNoLetter) {
		return trail.DeadLetter{}, rpc.NotFoundError("there is no dead letter %d: it was replayed or discarded, or has expired", id)
	}
	return letter, err
}

func toDeadLetterMessage(letter trail.DeadLetter) *syncv1.DeadLetter {
	m := &syncv1.DeadLetter{
		Id: letter.ID, Service: letter.Service, Subject: letter.Subject, Reason: letter.Reason,
		ParkedAt: timestamppb.New(letter.ParkedAt), OriginalSequence: letter.Sequence,
	}
	if key, _, err := topology.ParseChangeOrTombstoneSubject(letter.Subject); err == nil {
		m.Ref = key.ToObjectRef()
	}
	return m
}

// changeJSON returns a change with its object as JSON, or "" for any other message.
func changeJSON(data []byte) string {
	var m eventv1.ResourceChange
	if err := proto.Unmarshal(data, &m); err != nil || m.GetRef() == nil {
		return ""
	}
	object := json.RawMessage(m.GetObject())
	m.Object = nil
	head, err := protojson.Marshal(&m)
	if err != nil {
		return ""
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(head, &fields); err != nil {
		return ""
	}
	if json.Valid(object) {
		fields["object"] = object
	}
	shown, err := json.MarshalIndent(fields, "", "  ")
	if err != nil {
		return ""
	}
	return string(shown)
}
