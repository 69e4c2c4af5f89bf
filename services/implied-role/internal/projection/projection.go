// Package projection keeps the rules of all namespaces in an OpenFGA store, one tuple for each
// pair of roles, so that a check there sees what a role implies without any RoleBinding.
//
// Tuples between two roles of one namespace belong to it: it adds what is missing and removes
// what no rule says. So nothing needs to be recorded, and nothing leaks whatever is missed.
package projection

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	openfgav1 "github.com/openfga/api/proto/openfga/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/fga"
)

// Config of a projection. All fields are required.
type Config struct {
	OpenFGA *fga.Client
	// Store is the name of the OpenFGA store.
	Store string
	Roles Roles
	// Rules are those of a namespace now.
	Rules func(namespace string) *infer.RuleSet
	Log   *slog.Logger
}

// Projection is what keeps them.
type Projection struct {
	cfg Config

	mu sync.Mutex
	// id of the store, has what it holds by namespace; has is nil while that is not known.
	id  string
	has map[string]map[link]struct{}
	// written are the rules that has speaks of.
	written map[string]*infer.RuleSet
}

// New makes one.
func New(cfg Config) *Projection { return &Projection{cfg: cfg} }

// Forget has everything read again, because others may have changed it.
func (p *Projection) Forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.has = nil
}

// Sync makes OpenFGA say what the rules of a namespace do. The first one, and the first after
// [Projection.Forget], read all that OpenFGA has, and set right other namespaces, too. That
// OpenFGA, the store or its model is not there is an error that waits; that the model has no such
// roles is told in the log.
func (p *Projection) Sync(ctx context.Context, namespace string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	namespaces := []string{namespace}
	if p.has == nil {
		if err := p.load(ctx); err != nil {
			return fmt.Errorf("reading rules in OpenFGA: %w", err)
		}
		namespaces = append(namespaces, slices.Sorted(maps.Keys(p.has))...)
	}
	for _, n := range namespaces {
		if err := p.write(ctx, n); err != nil {
			p.has = nil // Some of it may be written.
			return fmt.Errorf("writing rules of namespace %s to OpenFGA: %w", n, err)
		}
	}
	return nil
}

func (p *Projection) load(ctx context.Context) error {
	stores, err := p.cfg.OpenFGA.FindStores(ctx, p.cfg.Store)
	if err != nil {
		return err
	}
	if len(stores) != 1 {
		return fault.Unavailable(fmt.Errorf("there are %d OpenFGA stores of the name %q, not one: correct --project-store", len(stores), p.cfg.Store))
	}
	has := map[string]map[link]struct{}{}
	for t, err := range p.cfg.OpenFGA.ReadTuples(ctx, stores[0].ID) {
		if err != nil {
			return err
		}
		if namespace, l, ours := p.cfg.Roles.parse(t.GetKey()); ours {
			if has[namespace] == nil {
				has[namespace] = map[link]struct{}{}
			}
			has[namespace][l] = struct{}{}
		}
	}
	p.id, p.has, p.written = stores[0].ID, has, map[string]*infer.RuleSet{}
	return nil
}

func (p *Projection) write(ctx context.Context, namespace string) error {
	rules := p.cfg.Rules(namespace)
	if rules.Same(p.written[namespace]) {
		return nil
	}
	p.written[namespace] = rules
	has := p.has[namespace]
	desired, tooLong := p.cfg.Roles.links(namespace, rules)
	add, remove := p.missing(desired, has), p.missing(has, desired)
	if len(add)+len(remove) == 0 {
		return nil
	}
	if tooLong > 0 {
		p.cfg.Log.WarnContext(ctx, "rules whose names are too long are not in OpenFGA: shorten namespace or roles",
			slog.String("namespace", namespace), slog.Int("rules", tooLong))
	}
	err := p.cfg.OpenFGA.Write(ctx, p.id, "", add, remove)
	switch {
	case errors.Is(err, fga.ErrInvalidTuple):
		p.cfg.Log.WarnContext(ctx, "the model of the OpenFGA store cannot hold rules: let roles be assigned to roles, or correct --project-roles",
			slog.String("namespace", namespace), slog.String("store", p.cfg.Store), slog.Any("error", err))
		return nil
	case errors.Is(err, fga.ErrStoreNotFound), errors.Is(err, fga.ErrModelNotFound):
		return fault.Unavailable(err) // Both may yet be made.
	case err != nil:
		return err
	}
	if p.has[namespace] = desired; len(desired) == 0 {
		delete(p.has, namespace)
		delete(p.written, namespace)
	}
	return nil
}

// missing are the tuples of what is in one and not in the other, in order.
func (p *Projection) missing(in, from map[link]struct{}) []*openfgav1.TupleKey {
	var tuples []*openfgav1.TupleKey
	for l := range in {
		if _, found := from[l]; !found {
			tuples = append(tuples, p.cfg.Roles.tuple(l))
		}
	}
	slices.SortFunc(tuples, func(a, b *openfgav1.TupleKey) int {
		return strings.Compare(a.GetObject()+" "+a.GetUser(), b.GetObject()+" "+b.GetUser())
	})
	return tuples
}
