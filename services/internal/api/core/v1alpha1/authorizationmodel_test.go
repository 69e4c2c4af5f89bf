package v1alpha1_test

import (
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

func made() *v1alpha1.AuthorizationModel {
	m := &v1alpha1.AuthorizationModel{Spec: v1alpha1.AuthorizationModelSpec{StoreRef: v1alpha1.StoreRef{Name: "demo"}, Model: "module x"}}
	m.Annotations = map[string]string{v1alpha1.ResourceAnnotation: "widgets.example.com", v1alpha1.ExportAnnotation: "a/b"}
	return m
}

func TestMatchesDesiredIgnoresForeignFields(t *testing.T) {
	for name, test := range map[string]struct {
		has  func(*v1alpha1.AuthorizationModel)
		want func(*v1alpha1.AuthorizationModel)
		same bool
	}{
		"as it was made":              {same: true},
		"others annotate it":          {has: func(m *v1alpha1.AuthorizationModel) { m.Annotations["example.org/other"] = "x" }, same: true},
		"others label it":             {has: func(m *v1alpha1.AuthorizationModel) { m.Labels = map[string]string{"a": "b"} }, same: true},
		"others declare tuples in it": {has: func(m *v1alpha1.AuthorizationModel) { m.Spec.Tuples = []v1alpha1.Tuple{{}} }, same: true},
		"its cluster was filled in":   {has: func(m *v1alpha1.AuthorizationModel) { m.Spec.StoreRef.Cluster = "local" }, same: true},
		"it is of another cluster":    {want: func(m *v1alpha1.AuthorizationModel) { m.Spec.StoreRef.Cluster = "remote" }},
		"it says another model":       {has: func(m *v1alpha1.AuthorizationModel) { m.Spec.Model = "module y" }},
		"it is of another Store":      {has: func(m *v1alpha1.AuthorizationModel) { m.Spec.StoreRef.Name = "other" }},
		"it is of another resource": {has: func(m *v1alpha1.AuthorizationModel) {
			m.Annotations[v1alpha1.ResourceAnnotation] = "gadgets.example.com"
		}},
		"an annotation is gone":        {has: func(m *v1alpha1.AuthorizationModel) { delete(m.Annotations, v1alpha1.ExportAnnotation) }},
		"it is rejected since":         {want: func(m *v1alpha1.AuthorizationModel) { m.Annotations[v1alpha1.RejectedAnnotation] = "no schema" }},
		"it is no more rejected":       {has: func(m *v1alpha1.AuthorizationModel) { m.Annotations[v1alpha1.RejectedAnnotation] = "no schema" }},
		"its document says other":      {want: func(m *v1alpha1.AuthorizationModel) { m.Annotations[v1alpha1.PolicyAnnotation] = "{}" }},
		"it is of another document":    {want: func(m *v1alpha1.AuthorizationModel) { m.Annotations[v1alpha1.DocumentAnnotation] = "default/door" }},
		"somebody took all of them":    {has: func(m *v1alpha1.AuthorizationModel) { m.Annotations = nil }},
		"none was ever wanted, nor is": {has: func(m *v1alpha1.AuthorizationModel) { m.Annotations = nil }, want: func(m *v1alpha1.AuthorizationModel) { m.Annotations = nil }, same: true},
	} {
		has, want := made(), made()
		if test.has != nil {
			test.has(has)
		}
		if test.want != nil {
			test.want(want)
		}
		if got := has.MatchesDesired(want); got != test.same {
			t.Errorf("%s: holds %t", name, got)
		}
	}
}

func TestStoreRefKeyDefaultsToOwnCluster(t *testing.T) {
	for want, ref := range map[string]v1alpha1.StoreRef{
		"here":  {Name: "demo"},
		"there": {Name: "demo", Cluster: "there"},
	} {
		if key := ref.Key("here"); key.Cluster != want || key.Name != "demo" || key.String() != "stores.core.platform-mesh.io/demo" {
			t.Errorf("%+v leads to %+v", ref, key)
		}
	}
}

func TestStoreNotFoundMessageExplainsClusterNames(t *testing.T) {
	here := v1alpha1.StoreNotFoundMessage(v1alpha1.StoreRef{Name: "demo"}.Key("here"), "here")
	if strings.Contains(here, "--cluster") || !strings.Contains(here, `no Store "demo" in cluster "here"`) {
		t.Errorf("of this cluster: %s", here)
	}
	there := v1alpha1.StoreNotFoundMessage(v1alpha1.StoreRef{Name: "demo", Cluster: "there"}.Key("here"), "here")
	for _, want := range []string{`no Store "demo" in cluster "there"`, "--cluster of its watcher", `this one is "here"`} {
		if !strings.Contains(there, want) {
			t.Errorf("of another: %s; want %q in it", there, want)
		}
	}
}
