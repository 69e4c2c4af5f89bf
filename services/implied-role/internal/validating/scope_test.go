package validating

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/implied-role/infer"
)

// newCoverageOf returns a scope that finds rules in these namespaces, and registers its selector at once.
func newCoverageOf(names ...string) *namespaceCoverage {
	s := newNamespaceCoverage(func(context.Context) (map[string]struct{}, error) {
		found := map[string]struct{}{}
		for _, name := range names {
			found[name] = struct{}{}
		}
		return found, nil
	}, infer.DefaultPolicy())
	var is *metav1.LabelSelector
	s.refresh = func(ctx context.Context) error {
		want, err := s.DesiredSelector(ctx, is)
		is = want
		s.RecordRegistered(is)
		return err
	}
	return s
}

func text(s *metav1.LabelSelector) string {
	return fmt.Sprint(s.MatchExpressions[0].Operator, s.MatchExpressions[0].Values)
}

func many(n int) []string {
	var names []string
	for i := range n {
		names = append(names, fmt.Sprintf("ns-%04d", i))
	}
	return names
}

func TestDesiredSelectorNamesNamespacesWithRules(t *testing.T) {
	all := "NotIn[entail-system kube-node-lease kube-public kube-system]"
	for name, c := range map[string]struct {
		rules, wanted []string
		is            *metav1.LabelSelector
		want          string
	}{
		"nothing yet":                {nil, nil, nil, "DoesNotExist[]"},
		"the first time":             {[]string{"b", "a"}, nil, nil, "In[a b]"},
		"it only grows":              {nil, []string{"c"}, namespaceSelector(metav1.LabelSelectorOpIn, "a"), "In[a c]"},
		"after there was none":       {nil, []string{"c"}, namespaceSelector(metav1.LabelSelectorOpDoesNotExist), "In[c]"},
		"what is excluded":           {[]string{"kube-system", "entail-system", "a"}, nil, nil, "In[a]"},
		"what somebody else made":    {[]string{"a"}, nil, &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, "In[a]"},
		"what leaves some out":       {[]string{"a"}, nil, namespaceSelector(metav1.LabelSelectorOpNotIn, "a"), "In[a]"},
		"as many as are named":       {many(maxNamespaces), nil, nil, text(namespaceSelector(metav1.LabelSelectorOpIn, many(maxNamespaces)...))},
		"more than are named":        {many(maxNamespaces + 1), nil, nil, all},
		"once all, always all":       {nil, nil, namespaceSelector(metav1.LabelSelectorOpNotIn, newCoverageOf().excluded...), all},
		"one more than can be named": {nil, []string{"a"}, namespaceSelector(metav1.LabelSelectorOpIn, many(maxNamespaces)...), all},
	} {
		s := newCoverageOf(c.rules...)
		for _, wanted := range c.wanted {
			s.wanted[wanted] = struct{}{}
		}
		got, err := s.DesiredSelector(t.Context(), c.is)
		if err != nil || text(got) != c.want {
			t.Errorf("%s: %v, %.200s", name, err, text(got))
		}
	}
}

func TestNamespaceIsCoveredAfterRegistration(t *testing.T) {
	s := newCoverageOf("a")
	if s.checkPropagated("a") == nil {
		t.Error("it is, before anything is")
	}
	for _, name := range []string{"a", "b"} {
		if err := s.coverNamespace(t.Context(), name); err != nil || s.coveredSince(name) == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if s.checkPropagated("b") == nil {
		t.Error("the API server knows at once")
	}
	if err := s.waitUntilPropagated(t.Context(), "b"); err != nil {
		t.Error(err)
	}
	s.RecordRegistered(namespaceSelector(metav1.LabelSelectorOpIn, "a", "z")) // As another replica would.
	if s.coveredSince("b") != 0 || s.checkPropagated("a") != nil || s.checkPropagated("z") == nil || s.checkPropagated("kube-system") != nil {
		t.Error("it does not go by what is registered")
	}
	if err := s.waitUntilPropagated(t.Context(), "z"); err != nil {
		t.Error(err)
	}
	if again, err := s.DesiredSelector(t.Context(), namespaceSelector(metav1.LabelSelectorOpIn, "q")); err != nil || !slices.Equal(again.MatchExpressions[0].Values, []string{"a", "b", "q", "z"}) {
		t.Errorf("what was taken out is not put back: %v", again)
	}
	if s.coverNamespace(t.Context(), "No Name") == nil {
		t.Error("what is no name of a namespace is covered")
	}
	if again, err := s.DesiredSelector(t.Context(), nil); err != nil || slices.Contains(again.MatchExpressions[0].Values, "No Name") {
		t.Errorf("the API server is asked for what it never takes: %v, %v", again, err)
	}
	if s.checkPropagated("z") == nil {
		t.Error("the API server is taken to know what was taken out, and is about to be put back")
	}
	s.RecordRegistered(namespaceSelector(metav1.LabelSelectorOpNotIn, s.excluded...))
	if err := s.waitUntilPropagated(t.Context(), "any"); err != nil {
		t.Errorf("all does not cover one: %v", err)
	}
	s.refresh = func(context.Context) error { return errors.New("on purpose") }
	s.RecordRegistered(namespaceSelector(metav1.LabelSelectorOpDoesNotExist))
	if s.coverNamespace(t.Context(), "c") == nil {
		t.Error("what cannot be registered is covered")
	}
}
