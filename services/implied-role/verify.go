package impliedrole

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/bootclock"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

const (
	// few is the number of objects that are always read one by one.
	few = 50
	// listed is the number of listed objects that cost as much as one read.
	listed = 8
	// readsAtATime bounds the rules that are read in parallel.
	readsAtATime = 8
	// fresh bounds the age of a listing that is used.
	fresh = 10 * time.Second
)

// sourceListing holds the sources of a namespace as the API server listed them. The zero value holds none.
type sourceListing struct {
	// at is the time of the listing, by [bootclock.Now].
	at       time.Duration
	bindings map[string]*infer.Binding
}

// verifier verifies actions that give roles against the API server. No subject gets a role because of NATS alone.
type verifier struct {
	applier   *planApplier
	namespace string
	// planned holds the sources from which the plans were made.
	planned map[string]*infer.Binding
	// err is the reason for which no role may be given. Webhooks may not be in force, or rules may differ from the
	// informer or be unreadable.
	err error
	// bindings holds the listed sources. Nil means that each source is read separately.
	bindings map[string]*infer.Binding

	mu sync.Mutex
	// told holds one function per source, which verifies the source once.
	told map[string]func() error
}

// newVerifier prepares the check of the actions that give rights. It verifies the rules at the API server. It also lists
// the source bindings, if one list is cheaper than reading each of them.
func (a *planApplier) newVerifier(ctx context.Context, n *namespaceHistory, plans []infer.SourcePlan, actions []infer.Action) *verifier {
	w := &verifier{applier: a, namespace: n.name, planned: map[string]*infer.Binding{}, told: map[string]func() error{}}
	for _, plan := range plans {
		w.planned[plan.Name] = plan.Source
	}
	sources := map[string]struct{}{}
	gains := slices.DeleteFunc(slices.Clone(actions), func(action infer.Action) bool { return !action.AddsSubject() })
	for _, gain := range gains {
		sources[gain.Source] = struct{}{}
	}
	if len(gains) == 0 {
		return w
	}
	if a.guard != nil {
		w.err = a.guard(ctx, n.name)
	}
	if w.err == nil {
		w.err = w.verifyRules(ctx, n.ruleSet, gains)
	}
	if w.err == nil {
		w.bindings, w.err = a.listSources(ctx, n, len(sources))
	}
	return w
}

// listSources returns the listed sources of a namespace, or nil to read each one. It lists them if that costs less. It
// reuses a listing of an earlier pass that is younger than fresh.
func (a *planApplier) listSources(ctx context.Context, n *namespaceHistory, sources int) (map[string]*infer.Binding, error) {
	if bootclock.Since(n.listed.at) < fresh {
		return n.listed.bindings, nil
	}
	if n.listed = (sourceListing{}); !isListCheaper(sources, a.state.CountBindings(n.name)) {
		return n.listed.bindings, nil
	}
	n.listed = sourceListing{bootclock.Now(), make(map[string]*infer.Binding, sources)}
	err := event.DecodeEach(a.kube.List(ctx, kinds.RoleBindings(), n.name), func(b *infer.Binding) {
		if b.IsSource() {
			n.listed.bindings[b.Name] = b
		}
	})
	if err != nil {
		n.listed = sourceListing{}
	}
	return n.listed.bindings, err
}

// isListCheaper reports whether listing all objects costs less than reading some of them one by one.
func isListCheaper(some, all int) bool { return some > max(few, all/listed) }

// readLiveObject returns an object from the API server. An object that does not exist is returned without a UID.
func readLiveObject[T any](ctx context.Context, w *verifier, kind kinds.Kind, name string) (*T, error) {
	is := new(T)
	now, err := w.applier.kube.Get(ctx, kind, w.namespace, name)
	switch {
	case errors.Is(err, kube.ErrNotFound):
		return is, nil
	case err != nil:
		return nil, err
	}
	return is, now.Decode(is)
}

// verifyAction returns nil if the action gives no role, or if the API server holds the source and the rules of its plan. The
// error [reconcile.ErrStale] requires a new plan.
func (w *verifier) verifyAction(ctx context.Context, action infer.Action) error {
	if w == nil || !action.AddsSubject() {
		return nil
	}
	if w.err != nil {
		return w.err
	}
	w.mu.Lock()
	told, known := w.told[action.Source]
	if !known {
		told = sync.OnceValue(func() error { return w.verifySource(ctx, action.Source) })
		w.told[action.Source] = told
	}
	w.mu.Unlock()
	return told()
}

func (w *verifier) verifySource(ctx context.Context, name string) error {
	key := w.applier.state.BindingKey(w.namespace, name)
	held, live := w.applier.state.Bindings.Get(key)
	planned := w.planned[name]
	if !live || planned == nil {
		return reconcile.ErrStale
	}
	confirms := func(is *infer.Binding) bool {
		return is.IsSource() && is.UID == planned.UID && is.Role == planned.Role && slices.Equal(is.Subjects, planned.Subjects)
	}
	if is := w.bindings[name]; is != nil && confirms(is) {
		return nil
	}
	is, err := readLiveObject[infer.Binding](ctx, w, kinds.RoleBindings(), name)
	if err != nil || confirms(is) {
		return err
	}
	return w.applier.refreshObject(ctx, kinds.RoleBindings(), held.Change)
}

// verifyRules verifies, for each given role, the rules of one path that implies it.
func (w *verifier) verifyRules(ctx context.Context, planned *infer.RuleSet, gains []infer.Action) error {
	now, held := w.applier.state.RuleSetAndRules(w.namespace)
	if !now.IsSameRuleSet(planned) {
		return reconcile.ErrStale
	}
	behind, err := rulesOnPaths(planned, gains)
	if err != nil {
		return err
	}
	held = slices.DeleteFunc(held, func(r state.Rule) bool { _, is := behind[r.Key.Name]; return !is })
	var rules map[string]*rolev1alpha1.ImpliedRoles
	if isListCheaper(len(behind), len(now.Rules())) {
		rules = make(map[string]*rolev1alpha1.ImpliedRoles, len(now.Rules()))
		err := event.DecodeEach(w.applier.kube.List(ctx, kinds.ImpliedRoles(), w.namespace), func(r *rolev1alpha1.ImpliedRoles) { rules[r.Name] = r })
		if err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(readsAtATime)
	for _, r := range held {
		group.Go(func() error { return w.verifyRule(ctx, r, rules[r.Key.Name]) })
	}
	return group.Wait()
}

func (w *verifier) verifyRule(ctx context.Context, held state.Rule, is *rolev1alpha1.ImpliedRoles) (err error) {
	confirms := func() bool {
		return string(is.UID) == held.UID && is.DeletionTimestamp == nil && is.Spec == held.Value.Spec
	}
	if is != nil && confirms() {
		return nil
	}
	if is, err = readLiveObject[rolev1alpha1.ImpliedRoles](ctx, w, kinds.ImpliedRoles(), held.Key.Name); err != nil || confirms() {
		return err
	}
	return w.applier.refreshObject(ctx, kinds.ImpliedRoles(), held.Change)
}

// rulesOnPaths names one rule for each step of the paths by which roles are given. It names all rules if there are more
// than few pairs of roles.
func rulesOnPaths(ruleSet *infer.RuleSet, gains []infer.Action) (map[string]struct{}, error) {
	names, ways := map[string]struct{}{}, map[[2]infer.Role]struct{}{}
	for _, gain := range gains {
		ways[[2]infer.Role{gain.Parent, gain.Child}] = struct{}{}
	}
	if len(ways) > few {
		for _, r := range ruleSet.Rules() {
			names[r.Name] = struct{}{}
		}
		return names, nil
	}
	for ends := range ways {
		way := ruleSet.ShortestPath(ends[0], ends[1])
		if len(way) == 0 {
			return nil, fmt.Errorf("%s does not imply %s: %w", ends[0], ends[1], reconcile.ErrStale)
		}
		for i := range len(way) - 1 {
			names[ruleSet.RulesBetween(way[i], way[i+1])[0]] = struct{}{}
		}
	}
	return names, nil
}
