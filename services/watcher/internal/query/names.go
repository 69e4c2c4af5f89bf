package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/nearest"
)

// learnInterval is the time between two reads of short names that are still missing.
const learnInterval = 10 * time.Second

// kindNames holds the names of kinds that users may write.
type kindNames struct {
	kinds []kinds.Kind

	mu sync.RWMutex
	// short holds the names that only the API server returns.
	short map[event.GroupResource][]string
}

func newKindNames(kinds []kinds.Kind) *kindNames {
	return &kindNames{kinds: kinds, short: map[event.GroupResource][]string{}}
}

// findKind returns the kind for a name: a resource or kind, in singular, plural or short form, with or without the
// group.
func (n *kindNames) findKind(name string) (kinds.Kind, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	plain, group, grouped := strings.Cut(strings.ToLower(name), ".")
	var followed, all []string
	for _, kind := range n.kinds {
		known := append([]string{kind.Resource, strings.ToLower(kind.Kind)}, n.short[kind.GroupResource]...)
		if slices.Contains(known, plain) && (!grouped || group == kind.Group) {
			return kind, nil
		}
		followed, all = append(followed, kind.GroupResource.String()), append(all, known...)
	}
	return kinds.Kind{}, unknownKindError(name, followed, all)
}

// unknownKindHeader marks the error about a kind that the watcher does not follow. A client must not wait for its objects.
const unknownKindHeader = "Entail-Unknown-Kind"

// unknownKindError returns the error about a kind. It suggests the nearest names, or lists the kinds.
func unknownKindError(name string, followed, names []string) error {
	plain, _, _ := strings.Cut(strings.ToLower(name), ".")
	hint := cmp.Or(nearest.Suggest(nearest.Names(plain, names)), ": use one of "+strings.Join(followed, ", "))
	err := connect.NewError(connect.CodeNotFound, fmt.Errorf("%q is not a kind that the watcher follows%s", name, hint))
	err.Meta().Set(unknownKindHeader, "true")
	return err
}

// pollShortNames reads missing short names from the API server at every interval until ctx ends.
func (n *kindNames) pollShortNames(ctx context.Context, from Source) {
	ticker := time.NewTicker(learnInterval)
	defer ticker.Stop()
	for {
		n.readMissingShortNames(ctx, from)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// readMissingShortNames ignores errors: without short names users only lose a convenience.
func (n *kindNames) readMissingShortNames(ctx context.Context, from Source) {
	for _, kind := range n.kinds {
		n.mu.RLock()
		known := len(n.short[kind.GroupResource]) > 0
		n.mu.RUnlock()
		if known {
			continue
		}
		if short, err := from.ShortNames(ctx, kind); err == nil {
			n.mu.Lock()
			n.short[kind.GroupResource] = short
			n.mu.Unlock()
		}
	}
}
