package impliedrole

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/entail-dev/entail/services/implied-role/internal/projection"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/condition"
	"github.com/entail-dev/entail/services/internal/consume"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/view"
)

// cluster is what is needed of the API server.
type cluster interface {
	Get(ctx context.Context, kind kinds.Kind, namespace, name string) (event.Change, error)
	Apply(ctx context.Context, kind kinds.Kind, seen event.Change, object any) (event.Change, error)
	Delete(ctx context.Context, kind kinds.Kind, obj event.Change) error
	ApplyStatus(ctx context.Context, kind kinds.Kind, obj event.Change, status any, cas bool) (event.Change, error)
	Event(ctx context.Context, obj event.Change, note condition.Note) error
}

// reconciler brings generated RoleBindings and the statuses of rules to what follows from
// the objects in the view, one namespace at a time.
type reconciler struct {
	*state.State
	*spaces
	view    *view.View
	api     cluster
	log     *slog.Logger
	metrics *metrics
	// projection is nil unless rules are to be in OpenFGA, too.
	projection *projection.Projection
	// writers has room for the changes that are made at a time, whatever the namespace.
	writers chan struct{}
}

// Keys implements [consume.Reconciler], and notes what of the namespace is to be looked at.
func (r *reconciler) Keys(k event.Key) []string {
	if k.Cluster != r.Cluster {
		return nil
	}
	switch k.GroupResource {
	case kinds.RoleBindings().GroupResource:
		r.touch(k.Namespace, r.touchedBy(k), k.Name)
	case kinds.ImpliedRoles().GroupResource:
		d := newDirt()
		d.rules = true
		if _, live := r.Rules.Get(k); !live {
			d.gone[k] = struct{}{}
		}
		r.touch(k.Namespace, d)
	default: // A Role or ClusterRole; statuses tell whether it exists.
		namespaces := r.NamespacesWithChild(k.Namespace, k.Name)
		for _, namespace := range namespaces {
			r.touch(namespace, dirt{rules: true})
		}
		return namespaces
	}
	return []string{k.Namespace}
}

// touchedBy is what a binding touches: itself as a source, unless it is generated and has
// always been, and the source that it was generated from. What we have just made touches nothing.
func (r *reconciler) touchedBy(k event.Key) dirt {
	d := newDirt()
	b, live := r.Bindings.Get(k)
	if !live {
		d.gone[k] = struct{}{}
		b, _ = r.Bindings.Tombstone(k)
	}
	if b.UID != "" && r.echo(b.Change) {
		return newDirt()
	}
	if b.Value != nil {
		d.sources[state.SourceOf(b.Value)] = struct{}{}
		if b.Value.Former != "" { // Somebody made it theirs; its source must know.
			d.sources[b.Value.Former] = struct{}{}
		}
	}
	if _, itself := d.sources[k.Name]; itself || b.Value == nil || r.GeneratedFrom(k.Namespace, k.Name) > 0 {
		d.sources[k.Name] = struct{}{}
	}
	return d
}

// maxRounds bounds how often a pass looks again because things change under it.
const maxRounds = 32

var errRestless = errors.New("objects keep changing")

// Reconcile implements [consume.Reconciler].
func (r *reconciler) Reconcile(ctx context.Context, p *consume.Pass[string]) error {
	results, err := r.reconcile(ctx, p.Key, p.Resync)
	for _, result := range results {
		for range result.Writes {
			p.Count(result.Change)
		}
		p.Report(result.Change, result.Outcome, result.Message)
	}
	return err
}

func (r *reconciler) reconcile(ctx context.Context, namespace string, resync bool) ([]consume.Result, error) {
	p := &pass{reconciler: r, namespace: namespace, writes: map[string]int{}, results: map[event.Key]consume.Result{}}
	everything := resync
	for range maxRounds {
		again, err := p.round(ctx, everything)
		if err == nil && !again && r.projection != nil {
			err = r.projection.Sync(ctx, namespace, resync)
		}
		if err != nil || !again {
			return p.said(), err
		}
		everything = false
	}
	return p.said(), fault.Unavailable(fmt.Errorf("namespace %s: %w", namespace, errRestless))
}
