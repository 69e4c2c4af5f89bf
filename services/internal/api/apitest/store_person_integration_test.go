//go:build integration

package apitest_test

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// fields holds the fields of an object, except its kind and name.
type fields = map[string]any

// person is a user of the API server. All requests are dry runs, except those of the administrator.
type person struct {
	t       *testing.T
	objects dynamic.Interface
	dry     []string
}

// newPerson binds a ClusterRole to a user. An empty name means the administrator.
func newPerson(t *testing.T, server *testenv.KubeServer, name, role string) person {
	t.Helper()
	if name == "" {
		return person{t: t, objects: server.DynamicClient(t)}
	}
	server.BindUser(t, "", name, role)
	return person{t, server.DynamicClientAs(t, name), []string{metav1.DryRunAll}}
}

func (p person) of(kind kinds.Kind) dynamic.ResourceInterface {
	if kind.GroupResource == kinds.PolicyDocuments().GroupResource {
		return p.objects.Resource(kind.GroupVersionResource()).Namespace("default")
	}
	return p.objects.Resource(kind.GroupVersionResource())
}

func objectOf(kind kinds.Kind, name string, f fields) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: fields{"apiVersion": kind.GroupVersionResource().GroupVersion().String(), "kind": kind.Kind}}
	maps.Copy(u.Object, f)
	if u.GetGenerateName() == "" {
		u.SetName(name)
	}
	return u
}

func (p person) create(kind kinds.Kind, name string, f fields) error {
	_, err := p.of(kind).Create(p.t.Context(), objectOf(kind, name, f), metav1.CreateOptions{DryRun: p.dry})
	return err
}

// apply is kubectl apply --server-side.
func (p person) apply(kind kinds.Kind, name string, f fields) error {
	_, err := p.of(kind).Apply(p.t.Context(), name, objectOf(kind, name, f), metav1.ApplyOptions{FieldManager: "test", DryRun: p.dry, Force: true})
	return err
}

func (p person) patch(kind kinds.Kind, name string, f fields) error {
	_, err := p.patched(kind, name, f)
	return err
}

func (p person) patched(kind kinds.Kind, name string, f fields, subresource ...string) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return p.of(kind).Patch(p.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: p.dry}, subresource...)
}

func (p person) delete(kind kinds.Kind, name string) error {
	return p.of(kind).Delete(p.t.Context(), name, metav1.DeleteOptions{DryRun: p.dry})
}

func reference(store, cluster string) fields {
	ref := fields{"name": store}
	if cluster != "" {
		ref["cluster"] = cluster
	}
	return fields{"spec": fields{"storeRef": ref}}
}

func model(store, cluster string) fields {
	f := reference(store, cluster)
	f["spec"].(fields)["model"] = "module m"
	return f
}

// generated returns a module with an annotation that only services write.
func generated(annotation string) fields {
	f := model("own", "")
	f["metadata"] = fields{"annotations": fields{annotation: "a.example"}}
	return f
}

func binding(export string) fields {
	return fields{"spec": fields{"reference": fields{"export": fields{"path": "root:x", "name": export}}}}
}

func store(adoption string) fields {
	return fields{"spec": fields{"coreModule": "module core", "adoption": adoption}}
}

// declaring returns a Store with tuples. Each tuple is written as object#relation@user.
func declaring(tuples ...string) fields {
	all := []any{}
	for _, t := range tuples {
		object, rest, _ := strings.Cut(t, "#")
		relation, user, _ := strings.Cut(rest, "@")
		all = append(all, fields{"object": object, "relation": relation, "user": user})
	}
	return fields{"spec": fields{"coreModule": "module core", "tuples": all}}
}

func conditional(text string) fields {
	f := declaring(text)
	f["spec"].(fields)["tuples"].([]any)[0].(fields)["condition"] = fields{"name": "c"}
	return f
}

func label(store any) fields {
	return fields{"metadata": fields{"labels": fields{corev1alpha1.StoreNameLabel: store}}}
}

// definition returns a CustomResourceDefinition of a kind with arbitrary fields.
func definition(name, kind, version string, labels fields) fields {
	plural, group, _ := strings.Cut(name, ".")
	return testenv.DefinitionFields(kinds.Kind{GroupResource: event.GroupResource{Group: group, Resource: plural}, Version: version, Kind: kind}, labels)
}

const widgets = "widgets.example.com"

func widget(store any) fields {
	return definition(widgets, "Widget", "v1", fields{corev1alpha1.StoreNameLabel: store})
}

// tenant creates a user who may write all objects that extend Stores, but has the verbs extend and adopt only on the
// Store "own".
func tenant(t *testing.T, server *testenv.KubeServer) person {
	t.Helper()
	group, all := corev1alpha1.GroupVersion.Group, []string{"*"}
	may := func(verbs []string, group string, resources ...string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{Verbs: verbs, APIGroups: []string{group}, Resources: resources}
	}
	own := may([]string{"extend", "adopt"}, group, corev1alpha1.Stores)
	own.ResourceNames = []string{"own", "held"}
	server.GrantUser(t, "", "tenant",
		own, may([]string{"get", "create", "update", "patch", "delete"}, group, corev1alpha1.AuthorizationModels, corev1alpha1.Stores),
		may(all, kinds.PolicyDocuments().Group, kinds.PolicyDocuments().Resource), may(all, kinds.APIBindings().Group, kinds.APIBindings().Resource),
		may(all, kinds.CustomResourceDefinitions().Group, kinds.CustomResourceDefinitions().Resource, kinds.CustomResourceDefinitions().Resource+"/status"))
	return person{t, server.DynamicClientAs(t, "tenant"), []string{metav1.DryRunAll}}
}
