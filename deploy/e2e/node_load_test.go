//go:build compose

package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

// load changes a store all the time, and knows who must be a viewer in the end.
type load struct {
	stores dynamic.ResourceInterface
	end    context.CancelFunc
	ended  chan error

	mu     sync.Mutex
	tuples []any
	viewer map[string]bool
	// lasting is the newest who stays one.
	lasting string
}

const (
	writePace = 150 * time.Millisecond
	// stays is how many writes a tuple stays that goes.
	stays = 20
)

// loaded begins to change the sample; nobody else changes its tuples meanwhile.
func loaded(t *testing.T, stores dynamic.ResourceInterface) *load {
	t.Helper()
	store, err := stores.Get(t.Context(), "demo", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	l := &load{stores: stores, ended: make(chan error, 1), viewer: map[string]bool{}, lasting: "user:beth"}
	if l.tuples, _, err = unstructured.NestedSlice(store.Object, "spec", "tuples"); err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	l.end = end
	go func() { l.ended <- l.run(ctx) }()
	return l
}

func (l *load) run(ctx context.Context) error {
	ticks := time.NewTicker(writePace)
	defer ticks.Stop()
	for i := 0; ; i++ {
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
			if err := l.write(ctx, i); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// write makes one a viewer, and takes that from who became one some time ago, if the number is odd.
func (l *load) write(ctx context.Context, i int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	user := fmt.Sprintf("user:load-%d", i)
	tuples := slices.Concat(l.tuples, []any{map[string]any{"user": user, "relation": "assignee", "object": "role:staff"}})
	gone := ""
	if before := i - stays; before > 0 && before%2 == 1 {
		gone = fmt.Sprintf("user:load-%d", before)
		tuples = withoutUser(tuples, gone)
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"tuples": tuples}})
	if err != nil {
		return err
	}
	// A write that was sent is done, whoever ends the load.
	if _, err := l.stores.Patch(context.WithoutCancel(ctx), "demo", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("write %d: %w", i, err)
	}
	l.tuples, l.viewer[user] = tuples, true
	if gone != "" {
		l.viewer[gone] = false
	}
	if i%2 == 0 {
		l.lasting = user
	}
	return nil
}

func withoutUser(tuples []any, user string) (kept []any) {
	for _, tuple := range tuples {
		if tuple, ok := tuple.(map[string]any); ok && tuple["user"] != user {
			kept = append(kept, tuple)
		}
	}
	return kept
}

// follows waits until what is written by now is applied.
func (l *load) follows(t *testing.T, m *machine, what string) {
	t.Helper()
	l.mu.Lock()
	newest := l.lasting
	l.mu.Unlock()
	eventually(t, soon, what, func(ctx context.Context) error { return answers(ctx, m, newest+" viewer document:roadmap", true) })
}

// stop ends it, and makes sure that no write was lost, neither of those who became viewers nor of those who are none any more.
func (l *load) stop(t *testing.T, m *machine) {
	t.Helper()
	l.end()
	if err := <-l.ended; err != nil {
		t.Fatal(err)
	}
	eventually(t, soon, "the last change is applied", func(ctx context.Context) error { return ready(ctx, l.stores, "demo") })
	var wrong []error
	for user, is := range l.viewer {
		wrong = append(wrong, answers(t.Context(), m, user+" viewer document:roadmap", is))
	}
	if err := errors.Join(wrong...); err != nil || len(wrong) < 2*stays {
		t.Errorf("after %d writes: %v", len(wrong), err)
	}
	t.Logf("%d writes were applied", len(wrong))
}

// answeredMeanwhile asks all the time while something is done, and nobody may be turned away.
func answeredMeanwhile(t *testing.T, m *machine, do func()) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		ticks := time.NewTicker(writePace)
		defer ticks.Stop()
		var refused error
		asked := 0
		for ; ; asked++ {
			select {
			case <-ctx.Done():
				if asked < 10 {
					refused = errors.Join(refused, fmt.Errorf("only %d questions were asked", asked))
				}
				done <- refused
				return
			case <-ticks.C:
				refused = errors.Join(refused, answers(t.Context(), m, "user:anne editor document:roadmap", true))
			}
		}
	}()
	do()
	end()
	if err := <-done; err != nil {
		t.Errorf("not answered meanwhile: %v", err)
	}
}
