package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/informer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

const (
	// patience bounds the wait for an object that the API server has and the index lacks.
	patience = 2 * time.Second
	// attention is the interval of checks for that object.
	attention = 5 * time.Millisecond
)

// awaitObject waits until the index holds an object as the API server has it. A nil object means that it must be gone.
func (s *indexState) awaitObject(ctx context.Context, key event.Key, object []byte) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	look, err := s.kinds[key.GroupResource].expect(key, object)
	if err != nil {
		return fmt.Errorf("wait for %s: %w", key, err)
	}
	for {
		if has, err := look(); has || err != nil {
			return err
		}
		if !backoff.Sleep(ctx, attention) {
			return fmt.Errorf("%w: it does not hold the newest state of %s", informer.ErrIncomplete, key)
		}
	}
}

// getAfterCallbacks returns an object of the informer after the callbacks for it have run, so the index holds it too.
func getAfterCallbacks[T any](s *indexState, table *informer.Lister[T], key event.Key) (o informer.Object[T], live bool) {
	s.view.RunBetweenChanges(func() { o, live = table.Get(key) })
	return o, live
}

// expectedObject is an object as the API server has it.
type expectedObject struct {
	kind         kinds.Kind
	uid, version string
	says         map[string]any
	// seen is the last version that did not meet the expectation, so it is compared only once.
	seen string
}

func newExpectedObject[T any](kind kinds.Kind, object []byte) (*expectedObject, error) {
	var shown metav1.PartialObjectMetadata
	now := new(T)
	err := json.Unmarshal(object, &shown)
	if err == nil {
		err = event.DecodeObject(object, now)
	}
	if err != nil {
		return nil, fmt.Errorf("decode a %s: %w", kind.Kind, err)
	}
	says, err := comparableFields(kind, now)
	return &expectedObject{kind: kind, uid: string(shown.UID), version: shown.ResourceVersion, says: says}, err
}

// isSatisfiedByObject reports whether the informer holds the same object, in a version that is as new or that has equal
// content.
func (e *expectedObject) isSatisfiedByObject(held event.Change, value any) bool {
	return e.isSatisfiedByChange(held, func() bool {
		says, err := comparableFields(e.kind, value)
		return err == nil && equality.Semantic.DeepEqual(e.says, says)
	})
}

// isSatisfiedByChange reports whether held is the same object, in a version that is as new or for which same returns true. An older
// version can be equal, because the watcher leaves out changes without meaning.
func (e *expectedObject) isSatisfiedByChange(held event.Change, same func() bool) bool {
	if held.UID != e.uid || held.ResourceVersion == e.seen {
		return false
	}
	if !(event.Change{Epoch: held.Epoch, ResourceVersion: e.version}).IsNewerThan(held) {
		return true
	}
	if same() {
		return true
	}
	e.seen = held.ResourceVersion
	return false
}

// comparableFields returns the fields of an object that are compared. It leaves out resourceVersion, managedFields, labels and
// annotations, and the status of kinds whose status is not read.
func comparableFields(kind kinds.Kind, object any) (map[string]any, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, fmt.Errorf("compare a %s: %w", kind.Kind, err)
	}
	if !kind.Status {
		delete(fields, "status")
	}
	for _, field := range []string{"resourceVersion", "managedFields", "annotations", "labels"} {
		unstructured.RemoveNestedField(fields, "metadata", field)
	}
	return fields, nil
}
