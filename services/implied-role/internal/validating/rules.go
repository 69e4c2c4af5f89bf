package validating

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
	"github.com/entail-dev/entail/services/internal/informer"
)

const (
	// fewRules bounds the rules of a namespace that are always read from the API server. With more rules, the guard
	// reads their number, which proves that the informer holds all of them.
	fewRules = 20
	pageSize = 500
)

// ruleSetReader reads the rules of namespaces.
type ruleSetReader struct {
	objects dynamic.Interface
	policy  infer.Policy
	// most bounds the rules of a namespace that are listed.
	most  int
	reads singleflight.Group

	mu    sync.Mutex
	view  *informer.Informer
	state *state.State
	// ruleSets caches rule sets by namespace until a rule changes. changes counts these changes.
	ruleSets map[string]*infer.RuleSet
	changes  uint64
}

func newRuleSetReader(objects dynamic.Interface, policy infer.Policy) *ruleSetReader {
	most := policy.MaxRules
	policy.MaxRules, policy.Excluded = math.MaxInt, nil // Rules that do not hold now may hold later.
	return &ruleSetReader{objects: objects, policy: policy, most: most, ruleSets: map[string]*infer.RuleSet{}}
}

// UseInformer lets the guard use an informer while the informer is current. Call it before the informer runs.
func (g *Validator) UseInformer(v *informer.Informer, s *state.State) {
	r := g.rules
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view, r.state = v, s
	v.OnLoaded(func() { r.dropCachedRuleSet("") })
	v.OnChange(func(k event.Key) {
		if k.GroupResource == impliedRolesResource() {
			r.dropCachedRuleSet(k.Namespace)
		}
	})
}

// dropCachedRuleSet drops the cached rule set of a namespace, or all if namespace is empty.
func (r *ruleSetReader) dropCachedRuleSet(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.changes++
	if delete(r.ruleSets, namespace); namespace == "" {
		clear(r.ruleSets)
	}
}

// currentRuleSet returns the rule set of a namespace as the API server has it. It lists the rules, or uses a current
// informer that holds as many rules as the API server counts. Concurrent calls for one namespace share reads.
func (r *ruleSetReader) currentRuleSet(ctx context.Context, namespace string) (*infer.RuleSet, error) {
	return coalesceRead(ctx, &r.reads, namespace, func(ctx context.Context) (*infer.RuleSet, error) { return r.readRuleSet(ctx, namespace) })
}

func (r *ruleSetReader) readRuleSet(ctx context.Context, namespace string) (*infer.RuleSet, error) {
	first := int64(fewRules)
	if r.hasManyRules(namespace) {
		first = 1 // Only the number of rules is needed.
	}
	page, err := r.listRulesPage(ctx, namespace, metav1.ListOptions{Limit: first})
	if err != nil {
		return nil, err
	}
	if remaining := page.GetRemainingItemCount(); page.GetContinue() != "" && remaining != nil {
		count := len(page.Items) + int(*remaining)
		if ruleSet := r.ruleSetIfInformerIsCurrent(ctx, namespace, count); ruleSet != nil {
			return ruleSet, nil
		}
		if count > r.most {
			return nil, admission.RefusalError("namespace %s has %d rules, more than the %d that are evaluated: delete some", namespace, count, r.most)
		}
	}
	list, err := appendRules(page, nil)
	for err == nil && page.GetContinue() != "" {
		if page, err = r.listRulesPage(ctx, namespace, metav1.ListOptions{Limit: pageSize, Continue: page.GetContinue()}); err == nil {
			list, err = appendRules(page, list)
		}
	}
	if err != nil {
		return nil, err
	}
	return infer.NewRuleSet(namespace, list, r.policy), nil
}

// appendRules appends the rules of a page to others. It leaves out rules that are being deleted.
func appendRules(page *unstructured.UnstructuredList, others []infer.Rule) ([]infer.Rule, error) {
	for _, item := range page.Items {
		var rule rolev1alpha1.ImpliedRoles
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, &rule); err != nil {
			return nil, fmt.Errorf("decoding rule %s: %w", item.GetName(), err)
		}
		if rule.DeletionTimestamp == nil {
			others = append(others, state.ToInferRule(&rule))
		}
	}
	return others, nil
}

// listNamespacesWithRules lists the namespaces that have rules, read from the API server.
func (r *ruleSetReader) listNamespacesWithRules(ctx context.Context) (map[string]struct{}, error) {
	all, page := map[string]struct{}{}, &unstructured.UnstructuredList{}
	for more := true; more; more = page.GetContinue() != "" {
		var err error
		if page, err = r.listRulesPage(ctx, "", metav1.ListOptions{Limit: pageSize, Continue: page.GetContinue()}); err != nil {
			return nil, err
		}
		for _, item := range page.Items {
			all[item.GetNamespace()] = struct{}{}
		}
	}
	return all, nil
}

func (r *ruleSetReader) listRulesPage(ctx context.Context, namespace string, options metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	list, err := r.objects.Resource(rolev1alpha1.GroupVersion.WithResource(rolev1alpha1.Resource)).Namespace(namespace).List(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("listing the rules of namespace %s: %w", namespace, err)
	}
	return list, nil
}

// hasManyRules reports whether the informer, current or not, holds more than fewRules rules of a namespace.
func (r *ruleSetReader) hasManyRules(namespace string) bool {
	r.mu.Lock()
	objects := r.state
	r.mu.Unlock()
	return objects != nil && objects.CountRules(namespace) > fewRules
}

// ruleSetIfInformerIsCurrent returns the rule set of the informer if the informer is current and holds count rules, or
// nil.
func (r *ruleSetReader) ruleSetIfInformerIsCurrent(ctx context.Context, namespace string, count int) *infer.RuleSet {
	r.mu.Lock()
	view, objects := r.view, r.state
	r.mu.Unlock()
	if view == nil || view.CheckCurrent(ctx) != nil {
		return nil
	}
	return r.ruleSetFromInformer(view, objects, namespace, count)
}

// ruleSetFromInformer returns the rule set of a current informer if it holds count rules, or nil.
func (r *ruleSetReader) ruleSetFromInformer(v *informer.Informer, objects *state.State, namespace string, count int) *infer.RuleSet {
	var (
		known   *infer.RuleSet
		changes uint64
		agrees  bool
	)
	v.RunBetweenChanges(func() { // Otherwise a rule could be counted that the cached set lacks.
		r.mu.Lock()
		defer r.mu.Unlock()
		known, changes, agrees = r.ruleSets[namespace], r.changes, objects.CountRules(namespace) == count
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
			list = append(list, state.ToInferRule(rule.Value))
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
