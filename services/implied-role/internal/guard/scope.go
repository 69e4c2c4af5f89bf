package guard

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

// maxNamespaces are named; beyond, all are covered.
const maxNamespaces = 5000

// scope is the namespaces in which RoleBindings are judged: those that have, or had, a rule. It is
// kept in the configuration itself, where all replicas find it, and only grows: a rule may be under
// way in a namespace that has none.
type scope struct {
	// list finds the namespaces with rules when nothing is registered yet.
	list func(context.Context) (map[string]struct{}, error)
	// excluded are those in which no rule holds.
	excluded []string
	// refresh has the selector registered.
	refresh func(context.Context) error

	mu sync.Mutex
	// wanted are namespaces that are to be covered.
	wanted map[string]struct{}
	// covered is since when namespaces are, by [bootclock.Now]; all is that of every one, 0 if only those
	// are covered that are named.
	covered map[string]time.Duration
	all     time.Duration
}

func newScope(list func(context.Context) (map[string]struct{}, error), p infer.Policy) *scope {
	excluded := slices.Concat(p.Excluded, infer.Unguardable())
	slices.Sort(excluded)
	return &scope{
		list: list, excluded: slices.Compact(excluded), wanted: map[string]struct{}{}, covered: map[string]time.Duration{},
		refresh: func(context.Context) error { return errors.New("the webhooks are not served yet") },
	}
}

// Selector implements [admission.Scope].
func (s *scope) Selector(ctx context.Context, is *metav1.LabelSelector) (*metav1.LabelSelector, error) {
	all, names := selector(metav1.LabelSelectorOpNotIn, s.excluded...), map[string]struct{}{}
	if equality.Semantic.DeepEqual(is, all) {
		return all, nil
	}
	named, ours := namedBy(is)
	for _, name := range named {
		names[name] = struct{}{}
	}
	s.uncover(names)
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
		return selector(metav1.LabelSelectorOpDoesNotExist), nil
	case len(names) > maxNamespaces:
		return all, nil
	}
	return selector(metav1.LabelSelectorOpIn, slices.Sorted(maps.Keys(names))...), nil
}

// uncover forgets all but what is registered: what somebody took out the API server has to learn anew.
func (s *scope) uncover(but map[string]struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = 0
	maps.DeleteFunc(s.covered, func(name string, _ time.Duration) bool { _, is := but[name]; return !is })
}

// selector is of namespaces by a label that the API server itself keeps.
func selector(operator metav1.LabelSelectorOperator, names ...string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: corev1.LabelMetadataName, Operator: operator, Values: names},
	}}
}

// namedBy lists the namespaces that a selector of ours names, if it does.
func namedBy(s *metav1.LabelSelector) (names []string, ok bool) {
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

// Registered implements [admission.Scope]. What is found registered may have been so for long, or
// for no time: another replica may have done that just now.
func (s *scope) Registered(is *metav1.LabelSelector) {
	s.mu.Lock()
	defer s.mu.Unlock()
	since := bootclock.Now()
	before, names := s.covered, map[string]time.Duration{}
	named, ok := namedBy(is)
	for _, name := range named {
		s.wanted[name] = struct{}{} // Whoever takes it out, it is put back.
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

// cover returns once a namespace is covered.
func (s *scope) cover(ctx context.Context, namespace string) error {
	if slices.Contains(s.excluded, namespace) || s.since(namespace) != 0 {
		return nil
	}
	// What is wanted stays so: a name that no namespace has would keep anything from being registered.
	if wrong := content.IsDNS1123Label(namespace); len(wrong) > 0 {
		return fmt.Errorf("%.100q is no name of a namespace: it %s", namespace, strings.Join(wrong, ", "))
	}
	s.mu.Lock()
	s.wanted[namespace] = struct{}{}
	s.mu.Unlock()
	if err := s.refresh(ctx); err != nil {
		return err
	}
	if s.since(namespace) == 0 {
		return fmt.Errorf("the webhook of RoleBindings does not cover namespace %s", namespace)
	}
	return nil
}

// since is since when a namespace is covered; 0 if it is not.
func (s *scope) since(namespace string) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all != 0 {
		return s.all
	}
	return s.covered[namespace]
}

// settle waits until the API server has had the time to learn that a namespace is covered.
func (s *scope) settle(ctx context.Context, namespace string) error {
	backoff.Sleep(ctx, admission.Settling-bootclock.Since(s.since(namespace)))
	return s.settled(namespace)
}

// settled is nil if the API server has had the time to learn that a namespace is covered.
func (s *scope) settled(namespace string) error {
	since := s.since(namespace)
	if slices.Contains(s.excluded, namespace) || since != 0 && bootclock.Since(since) >= admission.Settling {
		return nil
	}
	return fmt.Errorf("the API server is about to learn that RoleBindings in namespace %s are judged", namespace)
}
