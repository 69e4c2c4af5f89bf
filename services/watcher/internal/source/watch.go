package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strconv"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
)

// watchTimeout bounds one watch. The next one continues at its end.
const watchTimeout = 8 * time.Minute

// Event is one event of a watch.
type Event struct {
	Object
	// Version is the version from which a later watch can continue.
	Version string
	// Bookmark means that the event has no object, because nothing changed.
	Bookmark bool
}

// watchFrame is an event in the form of the wire.
type watchFrame struct {
	Type   watch.EventType `json:"type"`
	Object json.RawMessage `json:"object"`
}

// Watch yields the changes after the given version until the server ends the watch, which is no error. After
// [ErrExpired] list again; after any other error watch again.
func (s *Source) Watch(ctx context.Context, kind kinds.Kind, version string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		if err := s.watchKind(ctx, kind, version, yield); err != nil {
			yield(Event{}, fmt.Errorf("watching %s: %w", kind.GroupResource, err))
		}
	}
}

func (s *Source) watchKind(ctx context.Context, kind kinds.Kind, version string, yield func(Event, error) bool) error {
	kind = s.withServedVersion(kind)
	body, err := s.newCollectionRequest(kind).SetHeader("Accept", kube.AcceptHeader(kind, "PartialObjectMetadata")).
		Param("watch", "true").Param("resourceVersion", version).Param("allowWatchBookmarks", "true").
		Param("timeoutSeconds", strconv.Itoa(int(watchTimeout.Seconds()))).Stream(ctx)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w (%w)", ErrExpired, err)
	}
	if err != nil {
		return wrapExpiredError(err)
	}
	defer body.Close()
	frames := json.NewDecoder(body)
	for {
		var f watchFrame
		err := frames.Decode(&f)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		event, err := s.toEvent(kind, f)
		if err != nil {
			return err
		}
		if !yield(event, nil) {
			return nil
		}
	}
}

func (s *Source) toEvent(kind kinds.Kind, f watchFrame) (Event, error) {
	if f.Type == watch.Error {
		var status metav1.Status
		if err := json.Unmarshal(f.Object, &status); err != nil {
			return Event{}, fmt.Errorf("decoding an error of the API server: %w", err)
		}
		return Event{}, wrapExpiredError(&apierrors.StatusError{ErrStatus: status})
	}
	if f.Type == watch.Bookmark {
		var bookmark metav1.PartialObjectMetadata
		if err := json.Unmarshal(f.Object, &bookmark); err != nil {
			return Event{}, fmt.Errorf("decoding a bookmark: %w", err)
		}
		return Event{Version: bookmark.ResourceVersion, Bookmark: true}, nil
	}
	object, err := s.toObject(kind, f.Object)
	if err != nil {
		return Event{}, err
	}
	object.Deleted = f.Type == watch.Deleted
	return Event{Object: object, Version: object.ResourceVersion}, nil
}
