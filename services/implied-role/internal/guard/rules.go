package guard

import (
	"context"
	"fmt"
	"math"
	"sync"

	"golang.org/x/sync/singleflight"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/implied-role/internal/state"
	"github.com/entail-dev/entail/services/internal/admission"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/view"
)

const (
	// fewRules are read from the API server at every question. That of a namespace with more it tells
	// how many there are makes sure that the view misses none.
	fewRules = 20
	pageSize = 500
)

// rules knows the rules of namespaces.
type rules struct {
	objects dynamic.Interface
	policy  infer.Policy
	// most is how many rules of a namespace are listed at most.
	most  int
	reads singleflight.Group

	mu    sync.Mutex
	view  *view.View
	state *state.State
	// ruleSets are by namespace, as long as no rule of it changes; changes counts that.
	ruleSets map[string]*infer.RuleSet
	changes  uint64
}

func newRules(objects dynamic.Interface, policy infer.Policy) *rules {
	most := policy.MaxRules
	policy.MaxRules, policy.Excluded = math.MaxInt, nil // Those that do not hold yet may do so later.
	return &rules{objects: objects, policy: policy, most: most, ruleSets: map[string]*infer.RuleSet{}}
}

// Follow lets the guard decide by a view, as long as that is known to be current. Call it before
// the view runs.
func (g *Guard) Follow(v *view.View, s *state.State) {
	r := g.rules
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view, r.state = v, s
	v.OnLoad(func() { r.forget("") })
	v.OnChange(func(k event.Key) {
		if k.GroupResource == ruleResource() {
			r.forget(k.Namespace)
		}
	})
}

// forget drops what the rules of a namespace, or of all, say.
func (r *rules) forget(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	if delete(r.ruleSets, namespace); namespace == "" {
		clear(r.ruleSets)
	}
}

// of is what the rules of a namespace say, by the API server's own word: either they are few, or the
// view holds just as many and all that the watcher has told of, or all of them are listed. However
// many ask in a namespace, one after the other reads for all.
func (r *rules) of(ctx context.Context, namespace string) (*infer.RuleSet, error) {
	return shared(ctx, &r.reads, namespace, func(ctx context.Context) (*infer.RuleSet, error) { return r.read(ctx, namespace) })
}

func (r *rules) read(ctx context.Context, namespace string) (*infer.RuleSet, error) {
	first := int64(fewRules)
	if r.many(namespace) {
		first = 1 // How many there are is all that is asked.
	}
	page, err := r.page(ctx, namespace, metav1.ListOptions{Limit: first})
	if err != nil {
		return nil, err
	}
	if remaining := page.GetRemainingItemCount(); page.GetContinue() != "" && remaining != nil {
		count := len(page.Items) + int(*remaining)
		if ruleSet := r.held(ctx, namespace, count); ruleSet != nil {
			return ruleSet, nil
		}
		if count > r.most {
			return nil, admission.Refuse("namespace %s has %d rules, more than the %d that are looked at: delete some", namespace, count, r.most)
		}
	}
	list, err := rulesOf(page, nil)
	for err == nil && page.GetContinue() != "" {
		if page, err = r.page(ctx, namespace, metav1.ListOptions{Limit: pageSize, Continue: page.GetContinue()}); err == nil {
			list, err = rulesOf(page, list)
		}
	}
	if err != nil {
		return nil, err
	}
	return infer.NewRuleSet(namespace, list, r.policy), nil
}

// rulesOf adds the rules of a page to others.
func rulesOf(page *unstructured.UnstructuredList, others []infer.Rule) ([]infer.Rule, error) {
	for _, item := range page.Items {
		var rule rolev1alpha1.ImpliedRoles
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &rule); err != nil {
			return nil, fmt.Errorf("decoding rule %s: %w", item.GetName(), err)
		}
		if rule.DeletionTimestamp == nil {
			others = append(others, state.RuleOf(&rule))
		}
	}
	return others, nil
}

// namespaces lists those with rules, by the API server's own word.
func (r *rules) namespaces(ctx context.Context) (map[string]struct{}, error) {
	all, page := map[string]struct{}{}, &unstructured.UnstructuredList{}
	for more := true; more; more = page.GetContinue() != "" {
		var err error
		if page, err = r.page(ctx, "", metav1.ListOptions{Limit: pageSize, Continue: page.GetContinue()}); err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			all[item.GetNamespace()] = struct{}{}
		}
	}
	return all, nil
}

func (r *rules) page(ctx context.Context, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := r.objects.Resource(rolev1alpha1.GroupVersion.WithResource(rolev1alpha1.Resource)).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("listing the rules of namespace %s: %w", namespace, err)
	}
	return list, nil
}

// many tells whether the view, current or not, has more rules of a namespace than a few.
func (r *rules) many(namespace string) bool {
	r.mu.Lock()
	objects := r.state
	r.mu.Unlock()
	return objects != nil && objects.RuleCount(namespace) > fewRules
}

// held is what the view says of so many rules; nil if it cannot be relied on.
func (r *rules) held(ctx context.Context, namespace string, count int) *infer.RuleSet {
	r.mu.Lock()
	view, objects := r.view, r.state
	r.mu.Unlock()
	if view == nil || view.Current(ctx) != nil {
		return nil
	}
	return r.ofView(view, objects, namespace, count)
}

// ofView is what a current view says of so many rules; nil if it holds more or fewer.
func (r *rules) ofView(v *view.View, objects *state.State, namespace string, count int) *infer.RuleSet {
	var (
		known   *infer.RuleSet
		changes uint64
		agrees  bool
	)
	v.Between(func() { // Or a rule is counted that the rule set lacks.
		r.mu.Lock()
		defer r.mu.Unlock()
		known, changes, agrees = r.ruleSets[namespace], r.changes, objects.RuleCount(namespace) == count
	})
	if !agrees {
		return nil
	}
	if known != nil {
		return known
	}
	var list []infer.Rule
	for _, rule := range objects.RulesIn(namespace) {
		if rule.Value.DeletionTimestamp == nil {
			list = append(list, state.RuleOf(rule.Value))
		}
	}
	known = infer.NewRuleSet(namespace, list, r.policy)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.changes == changes {
		r.ruleSets[namespace] = known
	}
	return known
}
