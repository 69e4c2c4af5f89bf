package impliedrole

import (
	"context"
	"errors"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/internal/reconcile"
)

// maxReads is for how many sources RoleBindings are read one by one; beyond, all of the namespace.
const maxReads = 50

// confirmer is what the API server itself says of a namespace, read before anything is given: nobody
// gets a role on the word of the bus alone.
type confirmer struct {
	applier   *applier
	namespace string
	// planned are the sources as they were when it was planned what is to be given.
	planned map[string]*infer.Binding
	// err is why nothing may be given: the rules are not what the view holds, or cannot be read.
	err error
	// bindings are all of the namespace; nil when each source is read for itself.
	bindings map[string]*infer.Binding

	mu sync.Mutex
	// told finds out about sources, each once.
	told map[string]func() error
}

// confirmer reads what actions give by, which are of plans.
func (a *applier) confirmer(ctx context.Context, n *namespace, plans []infer.Plan, actions []infer.Action) *confirmer {
	w := &confirmer{applier: a, namespace: n.name, planned: map[string]*infer.Binding{}, told: map[string]func() error{}}
	for _, plan := range plans {
		w.planned[plan.Name] = plan.Source
	}
	sources := map[string]struct{}{}
	for _, action := range actions {
		if action.Gives() {
			sources[action.Source] = struct{}{}
		}
	}
	if len(sources) == 0 {
		return w
	}
	if a.guard != nil {
		w.err = a.guard(ctx, n.name)
	}
	if w.err == nil {
		w.err = w.confirmRules(ctx, n.ruleSet)
	}
	if w.err == nil && len(sources) > maxReads {
		w.bindings = map[string]*infer.Binding{}
		w.err = event.Each(a.kube.List(ctx, kinds.RoleBindings(), n.name), func(b *infer.Binding) { w.bindings[b.Name] = b })
	}
	return w
}

// confirm is nil when an action gives nothing, or the API server says of its source and of the rules
// what it was planned from. [reconcile.ErrStale] asks to plan anew.
func (w *confirmer) confirm(ctx context.Context, action infer.Action) error {
	if w == nil || !action.Gives() {
		return nil
	}
	if w.err != nil {
		return w.err
	}
	w.mu.Lock()
	told, known := w.told[action.Source]
	if !known {
		told = sync.OnceValue(func() error { return w.confirmSource(ctx, action.Source) })
		w.told[action.Source] = told
	}
	w.mu.Unlock()
	return told()
}

func (w *confirmer) confirmSource(ctx context.Context, name string) error {
	key := w.applier.state.BindingKey(w.namespace, name)
	held, live := w.applier.state.Bindings.Get(key)
	planned := w.planned[name]
	if !live || planned == nil {
		return reconcile.ErrStale
	}
	is := w.bindings[name]
	if w.bindings == nil {
		now, err := w.applier.kube.Get(ctx, kinds.RoleBindings(), w.namespace, name)
		if err != nil && !errors.Is(err, kube.ErrNotFound) {
			return err
		}
		if err == nil {
			is = new(infer.Binding)
			if err := now.Decode(is); err != nil {
				return err
			}
		}
	}
	if is != nil && is.UID == planned.UID && is.Role == planned.Role && slices.Equal(is.Subjects, planned.Subjects) {
		return nil
	}
	return w.applier.refresh(ctx, kinds.RoleBindings(), held.Change)
}

func (w *confirmer) confirmRules(ctx context.Context, planned *infer.RuleSet) error {
	now, held := w.applier.state.RuleSet(w.namespace)
	if !now.Same(planned) {
		return reconcile.ErrStale
	}
	rules := map[string]*rolev1alpha1.ImpliedRoles{}
	err := event.Each(w.applier.kube.List(ctx, kinds.ImpliedRoles(), w.namespace), func(r *rolev1alpha1.ImpliedRoles) { rules[r.Name] = r })
	if err != nil {
		return err
	}
	i := slices.IndexFunc(held, func(r state.Rule) bool {
		is := rules[r.Key.Name]
		return is == nil || string(is.UID) != r.UID || !equality.Semantic.DeepEqual(is.Spec, r.Value.Spec)
	})
	if i < 0 {
		return nil
	}
	return w.applier.refresh(ctx, kinds.ImpliedRoles(), held[i].Change)
}
