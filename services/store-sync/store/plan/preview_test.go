package plan

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	moduleplan "github.com/entail-dev/entail/services/store-sync/module/plan"
)

func TestAfterPlanAppliesPlan(t *testing.T) {
	object := func(name, text string, annotations map[string]string) *corev1alpha1.AuthorizationModel {
		return &corev1alpha1.AuthorizationModel{
			ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations}, Spec: corev1alpha1.AuthorizationModelSpec{Model: text},
		}
	}
	in := Input{Key: event.Key{Cluster: "here", Name: "demo"}}
	for _, m := range []struct {
		cluster string
		value   *corev1alpha1.AuthorizationModel
	}{
		{"here", object("changed", "old", map[string]string{"a": "1", "b": "1"})},
		{"here", object("bare", "old", nil)},
		{"here", object("deleted", "old", nil)},
		{"there", object("deleted", "theirs", nil)},
	} {
		in.Modules = append(in.Modules, ModelObject{Change: event.Change{Key: event.Key{Cluster: m.cluster, Name: m.value.Name}}, Value: m.value})
	}
	now := metav1.Unix(1, 0)
	after := in.AfterPlan(moduleplan.Plan{
		Apply: []corev1alpha1.AuthorizationModel{
			*object("changed", "new", map[string]string{"b": "2"}), *object("bare", "new", map[string]string{"b": "2"}), *object("made", "new", nil),
		},
		Delete: []string{"deleted", "nobody"},
	}, now)
	var got []string
	for _, m := range after.Modules {
		got = append(got, m.Key.Cluster+" "+m.Key.Name+" "+m.Value.Spec.Model+" "+m.Value.Annotations["a"]+m.Value.Annotations["b"])
	}
	if want := []string{"here changed new 12", "here bare new 2", "there deleted theirs ", "here made new "}; !slices.Equal(got, want) {
		t.Errorf("it leaves %q, want %q", got, want)
	}
	if made := after.Modules[3].Value; !made.CreationTimestamp.Equal(&now) || in.Modules[0].Value.Spec.Model != "old" || len(in.Modules) != 4 {
		t.Errorf("made at %v; before there were %v", made.CreationTimestamp, in.Modules)
	}
}
