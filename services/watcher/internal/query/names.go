package query

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
)

// learnInterval is how often the API server is asked again for a kind that it did not know.
const learnInterval = 10 * time.Second

// names are what people may call kinds.
type names struct {
	kinds []kinds.Kind

	mu sync.RWMutex
	// short are the names that only the API server knows.
	short map[event.GroupResource][]string
}

func newNames(kinds []kinds.Kind) *names {
	return &names{kinds: kinds, short: map[event.GroupResource][]string{}}
}

// find reads a resource or kind, singular or plural or short, with the group or without.
func (n *names) find(name string) (kinds.Kind, error) {
	n.mu.RLock()
	defer n.mu.RUnlock()
	plain, group, grouped := strings.Cut(strings.ToLower(name), ".")
	var followed []string
	for _, kind := range n.kinds {
		known := append([]string{kind.Resource, strings.ToLower(kind.Kind)}, n.short[kind.GroupResource]...)
		if slices.Contains(known, plain) && (!grouped || group == kind.Group) {
			return kind, nil
		}
		followed = append(followed, kind.GroupResource.String())
	}
	return kinds.Kind{}, rpc.Invalid("%q is not a kind that the watcher follows: use one of %s", name, strings.Join(followed, ", "))
}

// learn asks the API server for short names until it knows those of every kind, or ctx
// ends; it always waits for that.
func (n *names) learn(ctx context.Context, from Source) {
	ticker := time.NewTicker(learnInterval)
	defer ticker.Stop()
	for {
		n.learnOnce(ctx, from)
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// learnOnce passes over what cannot be learnt now: a name that is not known is only a convenience less.
func (n *names) learnOnce(ctx context.Context, from Source) {
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
