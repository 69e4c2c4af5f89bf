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
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
)

const (
	// patience is how long an object is waited for that the API server has.
	patience = 2 * time.Second
	// attention is how often it is looked for.
	attention = 5 * time.Millisecond
)

// await waits until the index was told of an object as the API server has it; nil if there is none.
func (s *state) await(ctx context.Context, key event.Key, object []byte) error {
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
			return fmt.Errorf("%w: it does not hold %s as the API server has it", view.ErrIncomplete, key)
		}
	}
}

// held is an object of which the index was told.
func held[T any](s *state, table *view.Table[T], key event.Key) (o view.Object[T], live bool) {
	s.view.Between(func() { o, live = table.Get(key) })
	return o, live
}

// expectation is an object as the API server has it.
type expectation struct {
	kind         kinds.Kind
	uid, version string
	says         map[string]any
	// seen is the version that did not meet it.
	seen string
}

func newExpectation[T any](kind kinds.Kind, object []byte) (*expectation, error) {
	var shown metav1.PartialObjectMetadata
	now := new(T)
	err := json.Unmarshal(object, &shown)
	if err == nil {
		err = event.Decode(object, now)
	}
	if err != nil {
		return nil, fmt.Errorf("decode a %s: %w", kind.Kind, err)
	}
	says, err := said(kind, now)
	return &expectation{kind: kind, uid: string(shown.UID), version: shown.ResourceVersion, says: says}, err
}

// isMetBy compares with what the view holds: the same object, as new, or saying the same.
func (e *expectation) isMetBy(held event.Change, value any) bool {
	return e.meets(held, func() bool {
		says, err := said(e.kind, value)
		return err == nil && equality.Semantic.DeepEqual(e.says, says)
	})
}

// meets says whether a state is the expected one, or as new, or says the same: the watcher leaves out changes without a
// meaning, so that another version may.
func (e *expectation) meets(held event.Change, same func() bool) bool {
	if held.UID != e.uid || held.ResourceVersion == e.seen {
		return false
	}
	if !(event.Change{Epoch: held.Epoch, ResourceVersion: e.version}).NewerThan(held) {
		return true
	}
	if same() {
		return true
	}
	e.seen = held.ResourceVersion
	return false
}

// said is an object without what changes with every write, and without a status that nobody reads.
func said(kind kinds.Kind, object any) (map[string]any, error) {
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
