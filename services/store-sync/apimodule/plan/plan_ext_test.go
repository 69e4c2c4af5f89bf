package plan_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
)

// simulatedCluster holds AuthorizationModels, as an API server would.
type simulatedCluster map[string]*corev1alpha1.AuthorizationModel

func (c simulatedCluster) plan(wanted []plan.WantedModel, unsure ...string) plan.ModelsPlan {
	in := plan.ModelsInput{Wanted: wanted, Unsure: map[string]bool{}, Taken: func(name string) bool { return c[name] != nil }}
	for _, o := range c {
		if o.Annotations[corev1alpha1.ResourceAnnotation] != "" {
			in.Has = append(in.Has, o)
		}
	}
	for _, export := range unsure {
		in.Unsure[export] = true
	}
	return plan.DecideModels(in)
}

// do carries out todo by server-side apply, which keeps fields that are not named.
func (c simulatedCluster) do(todo plan.ModelsPlan) {
	for _, o := range todo.Apply {
		had := c[o.Name]
		if had == nil {
			had = &corev1alpha1.AuthorizationModel{ObjectMeta: metav1.ObjectMeta{Name: o.Name}}
			c[o.Name] = had
		}
		had.Annotations = o.Annotations
		had.Spec.StoreRef, had.Spec.Model = o.Spec.StoreRef, o.Spec.Model
	}
	for _, name := range todo.Delete {
		delete(c, name)
	}
}

func (c simulatedCluster) names() []string { return slices.Sorted(maps.Keys(c)) }

func widgets(group string) plan.WantedModel {
	return plan.WantedModel{
		Resource: plan.APIResource{Group: group, Plural: "widgets", Singular: "widget"}, Store: corev1alpha1.StoreRef{Name: "demo"},
	}
}

func exportedAPIs(w plan.WantedModel, export string) plan.WantedModel {
	w.Export = export
	return w
}

func foreign(name string) *corev1alpha1.AuthorizationModel {
	return &corev1alpha1.AuthorizationModel{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestDecideModelsCreatesAndDeletesModels(t *testing.T) {
	t.Parallel()
	c := simulatedCluster{}
	c.do(c.plan([]plan.WantedModel{widgets("a.example.com")}))
	o := c["widgets-demo"]
	if o == nil || o.Spec.StoreRef.Name != "demo" || !strings.HasPrefix(o.Spec.Model, "module widgets\n") {
		t.Fatalf("made is %+v", c)
	}
	o.Spec.Tuples = []corev1alpha1.Tuple{{User: "user:anne"}}
	o.Annotations["note"] = "by hand"
	if todo := c.plan([]plan.WantedModel{widgets("a.example.com")}); len(todo.Apply)+len(todo.Delete) != 0 {
		t.Errorf("what is as it should be is changed: %+v", todo)
	}
	o.Spec.Model = "module edited\n"
	c.do(c.plan([]plan.WantedModel{widgets("a.example.com")}))
	if !strings.HasPrefix(o.Spec.Model, "module widgets\n") || len(o.Spec.Tuples) != 1 {
		t.Errorf("an edited model is not restored, or its tuples are lost: %+v", o.Spec)
	}
	c.do(c.plan(nil))
	if len(c) != 0 {
		t.Errorf("left is %v", c.names())
	}
}

func TestDecideModelsKeepsNamesOfOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		has    simulatedCluster
		wanted []plan.WantedModel
		want   []string
	}{
		"two groups": {simulatedCluster{}, []plan.WantedModel{widgets("b.com"), widgets("a.com")}, []string{"widgets-demo", "widgets.b.com-demo"}},
		"a person's": {simulatedCluster{"widgets-demo": foreign("widgets-demo")}, []plan.WantedModel{widgets("a.com")}, []string{"widgets-demo", "widgets.a.com-demo"}},
		"one of two exports": {
			simulatedCluster{}, []plan.WantedModel{exportedAPIs(widgets("a.com"), "c/two"), exportedAPIs(widgets("a.com"), "c/one")}, []string{"widgets-demo"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.has.do(test.has.plan(test.wanted))
			if got := test.has.names(); !slices.Equal(got, test.want) {
				t.Errorf("there are %v, want %v", got, test.want)
			}
		})
	}
	full := simulatedCluster{"widgets-demo": foreign("widgets-demo"), "widgets.a.com-demo": foreign("widgets.a.com-demo")}
	todo := full.plan([]plan.WantedModel{widgets("a.com")})
	if why := todo.Unnamed[widgets("a.com").Resource]; len(todo.Apply) != 0 || !strings.Contains(why, "widgets.a.com-demo") {
		t.Errorf("todo are %+v", todo)
	}
}

func TestDecideModelsKeepsNameOfFirstGroup(t *testing.T) {
	t.Parallel()
	c := simulatedCluster{}
	c.do(c.plan([]plan.WantedModel{widgets("b.com")}))
	c.do(c.plan([]plan.WantedModel{widgets("a.com"), widgets("b.com")}))
	if got := c["widgets-demo"].Annotations[corev1alpha1.ResourceAnnotation]; got != "widgets.b.com" {
		t.Errorf("widgets-demo is for %s now", got)
	}
	c.do(c.plan([]plan.WantedModel{widgets("a.com")}))
	if got := c.names(); !slices.Equal(got, []string{"widgets.a.com-demo"}) {
		t.Errorf("left is %v", got)
	}
}

func TestDecideModelsRecreatesDeletedModel(t *testing.T) {
	t.Parallel()
	c := simulatedCluster{}
	c.do(c.plan([]plan.WantedModel{widgets("a.com")}))
	now := metav1.Now()
	c["widgets-demo"].DeletionTimestamp = &now
	for name, wanted := range map[string][]plan.WantedModel{"wanted": {widgets("a.com")}, "not wanted": nil} {
		if todo := c.plan(wanted); len(todo.Apply)+len(todo.Delete) != 0 {
			t.Errorf("%s: %+v", name, todo)
		}
	}
	delete(c, "widgets-demo")
	if todo := c.plan([]plan.WantedModel{widgets("a.com")}); len(todo.Apply) != 1 {
		t.Errorf("afterwards: %+v", todo)
	}
}

func TestDecideModelsDoesNotDeleteWhileIncomplete(t *testing.T) {
	t.Parallel()
	c := simulatedCluster{}
	c.do(c.plan([]plan.WantedModel{exportedAPIs(widgets("a.com"), "c/one"), exportedAPIs(widgets("b.com"), "c/two")}))
	if todo := c.plan(nil, "c/one"); !slices.Equal(todo.Delete, []string{"widgets.b.com-demo"}) {
		t.Errorf("deleted are %v", todo.Delete)
	}
}

func TestDecideModelsReportsInvalidNameOnObject(t *testing.T) {
	t.Parallel()
	bad := plan.WantedModel{Resource: plan.APIResource{Group: "3d.com", Plural: "things", Singular: "thing"}, Store: corev1alpha1.StoreRef{Name: "demo"}}
	c := simulatedCluster{}
	c.do(c.plan([]plan.WantedModel{bad, widgets("a.com")}))
	if why := c["things-demo"].Annotations[corev1alpha1.RejectedAnnotation]; !strings.Contains(why, "things.3d.com") || !strings.Contains(why, "3d_com_thing") {
		t.Errorf("the reason is %q", why)
	}
	if c["widgets-demo"].Annotations[corev1alpha1.RejectedAnnotation] != "" {
		t.Error("the good one is rejected, too")
	}
	if todo := c.plan([]plan.WantedModel{bad, widgets("a.com")}); len(todo.Apply)+len(todo.Delete) != 0 {
		t.Errorf("it does not come to rest: %+v", todo)
	}
}

func TestDecideModelsIsDeterministicAndIdempotent(t *testing.T) {
	t.Parallel()
	resource := rapid.Custom(func(t *rapid.T) plan.WantedModel {
		return plan.WantedModel{
			Resource: plan.APIResource{
				Group:  rapid.SampledFrom([]string{"", "a.com", "b.com", "3d.com"}).Draw(t, "group"),
				Plural: rapid.SampledFrom([]string{"widgets", "things", "relations"}).Draw(t, "plural"), Singular: "one",
			},
			Store:  corev1alpha1.StoreRef{Name: "demo"},
			Export: rapid.SampledFrom([]string{"", "c/one", "c/two"}).Draw(t, "export"),
		}
	})
	rapid.Check(t, func(t *rapid.T) {
		c := simulatedCluster{}
		if rapid.Bool().Draw(t, "taken") {
			c["widgets-demo"] = foreign("widgets-demo")
		}
		for range rapid.IntRange(1, 4).Draw(t, "rounds") {
			wanted := rapid.SliceOfN(resource, 0, 8).Draw(t, "wanted")
			todo := c.plan(wanted)
			if again := c.plan(rapid.Permutation(wanted).Draw(t, "order")); !reflect.DeepEqual(todo, again) {
				t.Fatalf("another order, another plan:\n%+v\n%+v", todo, again)
			}
			c.do(todo)
			if rest := c.plan(wanted); len(rest.Apply)+len(rest.Delete) != 0 {
				t.Fatalf("something is left to do: %+v", rest)
			}
			asked, got := map[string]bool{}, map[string]bool{}
			for _, w := range wanted {
				if todo.Unnamed[w.Resource] == "" {
					asked[w.Resource.String()] = true
				}
			}
			for name, o := range c {
				if r := o.Annotations[corev1alpha1.ResourceAnnotation]; r != "" && got[r] {
					t.Fatalf("%s is a second one for %s", name, r)
				} else if r != "" {
					got[r] = true
				}
			}
			if !maps.Equal(got, asked) {
				t.Fatalf("there are models for %v, asked for were %v", got, asked)
			}
		}
	})
}

// read decodes an object as the informer does.
func read[T any](t *testing.T, text string) *T {
	t.Helper()
	o := new(T)
	if err := json.Unmarshal([]byte(text), o); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestModelWantedByDefinition(t *testing.T) {
	t.Parallel()
	d := read[plan.ResourceDefinition](t, `{"metadata":{"name":"widgets.example.com","labels":{"core.platform-mesh.io/store-name":"demo"}},
		"spec":{"group":"example.com","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},
			"versions":[{"name":"v1","served":true,"schema":{}},{"name":"v2","served":false}]},
		"status":{"conditions":[{"type":"Established","status":"True"}]}}`)
	want := plan.WantedModel{
		Resource: plan.APIResource{Group: "example.com", Plural: "widgets", Singular: "widget", Namespaced: true}, Store: corev1alpha1.StoreRef{Name: "demo"},
	}
	if got, ok := plan.ModelWantedByDefinition(d); !ok || got != want {
		t.Errorf("asks for %+v, want %+v", got, want)
	}
	if !d.IsServed("v1") || d.IsServed("v2") || d.IsServed("v3") {
		t.Error("it serves other versions than v1")
	}
	d.Status.Conditions[0].Status = metav1.ConditionFalse
	if d.Labels = nil; d.IsServed("v1") {
		t.Error("it is served before it is established")
	}
	if got, ok := plan.ModelWantedByDefinition(d); ok {
		t.Errorf("without a label it asks for %+v", got)
	}
}

const (
	binding = `{"metadata":{"name":"b"},"spec":{"reference":{"export":{"path":"root:p","name":"widgets.example.com"}}},"status":{"apiExportClusterName":"prov"}}`
	account = `{"metadata":{"name":"account"},"spec":{"organization":{"name":"acme","originClusterId":"orgs"}}}`
	export1 = `{"metadata":{"name":"widgets.example.com"},"spec":{"latestResourceSchemas":["v1.widgets.example.com"]}}`
	export2 = `{"metadata":{"name":"widgets.example.com"},"spec":{"resources":[{"schema":"v1.widgets.example.com"},{"schema":"v1.things.example.com"}]}}`
	schema  = `{"metadata":{"name":"v1.widgets.example.com"},"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"widgets","singular":"widget"}}}`
)

func TestModelsWantedByBinding(t *testing.T) {
	t.Parallel()
	known := map[string]*plan.ResourceSchema{"v1.widgets.example.com": read[plan.ResourceSchema](t, schema)}
	one := []plan.WantedModel{{
		Resource: plan.APIResource{Group: "example.com", Plural: "widgets", Singular: "widget"}, Export: "prov/widgets.example.com",
		Store: corev1alpha1.StoreRef{Name: "acme", Cluster: "orgs"},
	}}
	bound := func(export string) plan.ResolvedBinding {
		return plan.ResolvedBinding{
			Binding: read[plan.APIBinding](t, binding), Account: read[corev1alpha1.AccountInfo](t, account),
			Export: read[plan.APIExport](t, export), Schemas: known,
		}
	}
	for name, test := range map[string]struct {
		export string
		edit   func(*plan.ResolvedBinding)
		want   []plan.WantedModel
		all    bool
	}{
		"of v1alpha1":       {export1, nil, one, true},
		"a schema is gone":  {export2, nil, one, false},
		"no account":        {export1, func(b *plan.ResolvedBinding) { b.Account = nil }, nil, false},
		"no export":         {export1, func(b *plan.ResolvedBinding) { b.Export = nil }, nil, false},
		"in deletion":       {export1, func(b *plan.ResolvedBinding) { b.Binding.DeletionTimestamp = &metav1.Time{} }, nil, true},
		"the platform's":    {export1, func(b *plan.ResolvedBinding) { b.Binding.Spec.Reference.Export.Name = "core.platform-mesh.io" }, nil, true},
		"the system's":      {export1, func(b *plan.ResolvedBinding) { b.Binding.Spec.Reference.Export.Name = "system.platform-mesh.io" }, nil, true},
		"kcp's":             {export1, func(b *plan.ResolvedBinding) { b.Binding.Spec.Reference.Export.Name = "tenancy.kcp.io" }, nil, true},
		"nearly the system": {export1, func(b *plan.ResolvedBinding) { b.Binding.Spec.Reference.Export.Name = "ui.platform-mesh.io" }, one, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bound(test.export)
			if test.edit != nil {
				test.edit(&b)
			}
			if got, all := plan.ModelsWantedByBinding(b); !slices.Equal(got, test.want) || all != test.all {
				t.Errorf("asks for %+v, all %t; want %+v, %t", got, all, test.want, test.all)
			}
		})
	}
}

func TestNeedsFinalizerExcludesPlatformBindings(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"widgets": true, "core.platform-mesh.io-x": false, "topology.kcp.io-y": false} {
		b := read[plan.APIBinding](t, binding)
		b.Name = name
		if b.NeedsFinalizer() != want {
			t.Errorf("%s is held: %t", name, !want)
		}
	}
}
