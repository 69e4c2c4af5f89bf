// Package projection writes the rules of all namespaces to an OpenFGA store, one tuple per pair of roles. Checks there
// then include implied roles without any RoleBinding.
//
// The projection owns all tuples between two roles of one namespace. It adds the missing ones and removes those that no
// rule needs. So it records nothing, and a missed change leaves no tuple behind.
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

// Config holds the settings of a projector. All fields are required.
type Config struct {
	OpenFGA *fga.Client
	// Store is the name of the OpenFGA store.
	Store string
	Roles RoleRelation
	// Rules returns the current rule set of a namespace.
	Rules func(namespace string) *infer.RuleSet
	Log   *slog.Logger
}

// Projector keeps the tuples of one store in step with the rules.
type Projector struct {
	cfg Config

	mu sync.Mutex
	// id is the ID of the store. has holds its tuples by namespace, or is nil until they have been read.
	id  string
	has map[string]map[roleLink]struct{}
	// written holds the rule sets that were written, by namespace.
	written map[string]*infer.RuleSet
}

// New returns a projector. The first [Projector.SyncNamespace] reads the store.
func New(cfg Config) *Projector { return &Projector{cfg: cfg} }

// ForgetTuples makes the next [Projector.SyncNamespace] read the store again, because others may have changed it.
func (p *Projector) ForgetTuples() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.has = nil
}

// SyncNamespace writes the rules of a namespace to OpenFGA. The first call, and the first after [Projector.ForgetTuples], reads all
// tuples of the store and also repairs other namespaces. The error is [fault.Unavailable] if the store or its model
// does not exist. If the model has no such roles, SyncNamespace logs a warning and returns nil.
func (p *Projector) SyncNamespace(ctx context.Context, namespace string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	namespaces := []string{namespace}
	if p.has == nil {
		if err := p.loadTuples(ctx); err != nil {
			return fmt.Errorf("reading rules in OpenFGA: %w", err)
		}
		namespaces = append(namespaces, slices.Sorted(maps.Keys(p.has))...)
	}
	for _, n := range namespaces {
		if err := p.writeNamespace(ctx, n); err != nil {
			p.has = nil // Some tuples may have been written.
			return fmt.Errorf("writing rules of namespace %s to OpenFGA: %w", n, err)
		}
	}
	return nil
}

func (p *Projector) loadTuples(ctx context.Context) error {
	stores, err := p.cfg.OpenFGA.FindStores(ctx, p.cfg.Store)
	if err != nil {
		return err
	}
	if len(stores) != 1 {
		return fault.Unavailable(fmt.Errorf("there are %d OpenFGA stores of the name %q, not one: correct --project-store", len(stores), p.cfg.Store))
	}
	has := map[string]map[roleLink]struct{}{}
	for t, err := range p.cfg.OpenFGA.ReadTuples(ctx, stores[0].ID) {
		if err != nil {
			return err
		}
		if namespace, l, ours := p.cfg.Roles.parseTuple(t.GetKey()); ours {
			if has[namespace] == nil {
				has[namespace] = map[roleLink]struct{}{}
			}
			has[namespace][l] = struct{}{}
		}
	}
	p.id, p.has, p.written = stores[0].ID, has, map[string]*infer.RuleSet{}
	return nil
}

func (p *Projector) writeNamespace(ctx context.Context, namespace string) error {
	rules := p.cfg.Rules(namespace)
	if rules.IsSameRuleSet(p.written[namespace]) {
		return nil
	}
	p.written[namespace] = rules
	has := p.has[namespace]
	desired, tooLong := p.cfg.Roles.roleLinks(namespace, rules)
	add, remove := p.missingTuples(desired, has), p.missingTuples(has, desired)
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
		p.cfg.Log.WarnContext(ctx, "the model of the OpenFGA store cannot hold rules: allow roles to be assigned to roles, or correct --project-roles",
			slog.String("namespace", namespace), slog.String("store", p.cfg.Store), slog.Any("error", err))
		return nil
	case errors.Is(err, fga.ErrStoreNotFound), errors.Is(err, fga.ErrModelNotFound):
		return fault.Unavailable(err) // Both can still be created.
	case err != nil:
		return err
	}
	if p.has[namespace] = desired; len(desired) == 0 {
		delete(p.has, namespace)
		delete(p.written, namespace)
	}
	return nil
}

// missingTuples returns the tuples of the links that are in one set but not in the other, in order.
func (p *Projector) missingTuples(in, from map[roleLink]struct{}) []*openfgav1.TupleKey {
	var tuples []*openfgav1.TupleKey
	for l := range in {
		if _, found := from[l]; !found {
			tuples = append(tuples, p.cfg.Roles.linkTuple(l))
		}
	}
	slices.SortFunc(tuples, func(a, b *openfgav1.TupleKey) int {
		return strings.Compare(a.GetObject()+" "+a.GetUser(), b.GetObject()+" "+b.GetUser())
	})
	return tuples
}
