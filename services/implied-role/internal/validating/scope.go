package validating

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/admission"
	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/bootclock"
)

// maxNamespaces bounds the namespaces that the selector names. With more, it selects all but the excluded ones.
const maxNamespaces = 5000

// namespaceCoverage holds the namespaces in which RoleBindings are checked: those that have or had a rule. The registered selector
// itself stores it, so all replicas share it. It only grows, because a rule may be on its way to a namespace without
// rules.
type namespaceCoverage struct {
	// list lists the namespaces with rules. It is called when the registered selector is not ours.
	list func(context.Context) (map[string]struct{}, error)
	// excluded holds the namespaces in which no rule holds.
	excluded []string
	// refresh registers the selector.
	refresh func(context.Context) error

	mu sync.Mutex
	// wanted holds the namespaces to cover.
	wanted map[string]struct{}
	// covered holds the time of [bootclock.Now] since which each named namespace is covered. all is the time since
	// which every namespace is covered, or 0 if the selector names namespaces.
	covered map[string]time.Duration
	all     time.Duration
}

func newNamespaceCoverage(list func(context.Context) (map[string]struct{}, error), p infer.Policy) *namespaceCoverage {
	excluded := slices.Concat(p.Excluded, infer.UnsupportedNamespaces())
	slices.Sort(excluded)
	return &namespaceCoverage{
		list: list, excluded: slices.Compact(excluded), wanted: map[string]struct{}{}, covered: map[string]time.Duration{},
		refresh: func(context.Context) error { return errors.New("the webhooks are not served yet") },
	}
}

// DesiredSelector implements [admission.NamespaceScope].
func (s *namespaceCoverage) DesiredSelector(ctx context.Context, is *metav1.LabelSelector) (*metav1.LabelSelector, error) {
	all, names := namespaceSelector(metav1.LabelSelectorOpNotIn, s.excluded...), map[string]struct{}{}
	if equality.Semantic.DeepEqual(is, all) {
		return all, nil
	}
	named, ours := namespacesOfSelector(is)
	for _, name := range named {
		names[name] = struct{}{}
	}
	s.dropCoverageExcept(names)
	if !ours {
		var err error
		if names, err = s.list(ctx); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	maps.Copy(names, s.wanted)
	s.mu.Unlock()
	for _, excluded := range s.excluded {
		delete(names, excluded)
	}
	switch {
	case len(names) == 0:
		return namespaceSelector(metav1.LabelSelectorOpDoesNotExist), nil
	case len(names) > maxNamespaces:
		return all, nil
	}
	return namespaceSelector(metav1.LabelSelectorOpIn, slices.Sorted(maps.Keys(names))...), nil
}

// dropCoverageExcept forgets the namespaces that the registered selector does not name. If one was removed, the API server needs
// time again to notice that it is back.
func (s *namespaceCoverage) dropCoverageExcept(but map[string]struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = 0
	maps.DeleteFunc(s.covered, func(name string, _ time.Duration) bool { _, is := but[name]; return !is })
}

// namespaceSelector returns a selector of namespaces by the name label, which the API server maintains itself.
func namespaceSelector(operator metav1.LabelSelectorOperator, names ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: operator, Values: names},
	}}
}

// namespacesOfSelector lists the namespaces of a selector that this service made, if it names any. It reports whether the selector
// has that form.
func namespacesOfSelector(s *metav1.LabelSelector) (names []string, ok bool) {
	if s == nil || len(s.MatchLabels) > 0 || len(s.MatchExpressions) != 1 || s.MatchExpressions[0].Key != corev1.LabelMetadataName {
		return nil, false
	}
	switch one := s.MatchExpressions[0]; one.Operator {
	case metav1.LabelSelectorOpIn, metav1.LabelSelectorOpDoesNotExist:
		return one.Values, true
	default:
		return nil, false
	}
}

// RecordRegistered implements [admission.NamespaceScope]. A namespace that was not covered before counts as covered from now, because
// another replica may have registered it only now.
func (s *namespaceCoverage) RecordRegistered(is *metav1.LabelSelector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := bootclock.Now()
	before, names := s.covered, map[string]time.Duration{}
	named, ok := namespacesOfSelector(is)
	for _, name := range named {
		s.wanted[name] = struct{}{} // If a user removes the name, it is put back.
		if names[name] = since; before[name] != 0 {
			names[name] = before[name]
		}
	}
	switch s.covered = names; {
	case ok:
		s.all = 0
	case s.all == 0:
		s.all = since
	}
}

// coverNamespace returns nil once the webhook covers a namespace.
func (s *namespaceCoverage) coverNamespace(ctx context.Context, namespace string) error {
	if slices.Contains(s.excluded, namespace) || s.coveredSince(namespace) != 0 {
		return nil
	}
	// A name stays in wanted, so an invalid one would make every later registration fail.
	if wrong := content.IsDNS1123Label(namespace); len(wrong) > 0 {
		return fmt.Errorf("%.100q is not a valid name of a namespace: it %s", namespace, strings.Join(wrong, ", "))
	}
	s.mu.Lock()
	s.wanted[namespace] = struct{}{}
	s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return err
	}
	if s.coveredSince(namespace) == 0 {
		return fmt.Errorf("the webhook of RoleBindings does not cover namespace %s", namespace)
	}
	return nil
}

// coveredSince returns the time since which a namespace is covered, or 0.
func (s *namespaceCoverage) coveredSince(namespace string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all != 0 {
		return s.all
	}
	return s.covered[namespace]
}

// waitUntilPropagated waits until the API server had the time to notice that a namespace is covered.
func (s *namespaceCoverage) waitUntilPropagated(ctx context.Context, namespace string) error {
	backoff.Sleep(ctx, admission.RegistrationDelay-bootclock.Since(s.coveredSince(namespace)))
	return s.checkPropagated(namespace)
}

// checkPropagated returns nil if the API server had the time to notice that a namespace is covered.
func (s *namespaceCoverage) checkPropagated(namespace string) error {
	since := s.coveredSince(namespace)
	if slices.Contains(s.excluded, namespace) || since != 0 && bootclock.Since(since) >= admission.RegistrationDelay {
		return nil
	}
	return fmt.Errorf("the API server does not send RoleBindings of namespace %s to the webhook yet", namespace)
}
