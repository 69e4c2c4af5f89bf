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

// objectFields holds the fields of an object, except its kind and name.
type objectFields = map[string]any

// dryRunUser is a user of the API server. All requests are dry runs, except those of the administrator.
type dryRunUser struct {
	t       *testing.T
	objects dynamic.Interface
	dry     []string
}

// newDryRunUser binds a ClusterRole to a user. An empty name means the administrator.
func newDryRunUser(t *testing.T, server *testenv.KubeServer, name, role string) dryRunUser {
	t.Helper()
	if name == "" {
		return dryRunUser{t: t, objects: server.DynamicClient(t)}
	}
	server.BindUser(t, "", name, role)
	return dryRunUser{t, server.DynamicClientAs(t, name), []string{metav1.DryRunAll}}
}

func (p dryRunUser) of(kind kinds.Kind) dynamic.ResourceInterface {
	if kind.GroupResource == kinds.PolicyDocuments().GroupResource {
		return p.objects.Resource(kind.GroupVersionResource()).Namespace("default")
	}
	return p.objects.Resource(kind.GroupVersionResource())
}

func objectOf(kind kinds.Kind, name string, f objectFields) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: objectFields{"apiVersion": kind.GroupVersionResource().GroupVersion().String(), "kind": kind.Kind}}
	maps.Copy(u.Object, f)
	if u.GetGenerateName() == "" {
		u.SetName(name)
	}
	return u
}

func (p dryRunUser) create(kind kinds.Kind, name string, f objectFields) error {
	_, err := p.of(kind).Create(p.t.Context(), objectOf(kind, name, f), metav1.CreateOptions{DryRun: p.dry})
	return err
}

// apply is kubectl apply --server-side.
func (p dryRunUser) apply(kind kinds.Kind, name string, f objectFields) error {
	_, err := p.of(kind).Apply(p.t.Context(), name, objectOf(kind, name, f), metav1.ApplyOptions{FieldManager: "test", DryRun: p.dry, Force: true})
	return err
}

func (p dryRunUser) patch(kind kinds.Kind, name string, f objectFields) error {
	_, err := p.patched(kind, name, f)
	return err
}

func (p dryRunUser) patched(kind kinds.Kind, name string, f objectFields, subresource ...string) (*unstructured.Unstructured, error) {
	patch, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	return p.of(kind).Patch(p.t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{DryRun: p.dry}, subresource...)
}

func (p dryRunUser) delete(kind kinds.Kind, name string) error {
	return p.of(kind).Delete(p.t.Context(), name, metav1.DeleteOptions{DryRun: p.dry})
}

func reference(store, cluster string) objectFields {
	ref := objectFields{"name": store}
	if cluster != "" {
		ref["cluster"] = cluster
	}
	return objectFields{"spec": objectFields{"storeRef": ref}}
}

func model(store, cluster string) objectFields {
	f := reference(store, cluster)
	f["spec"].(objectFields)["model"] = "module m"
	return f
}

// generated returns a module with an annotation that only services write.
func generated(annotation string) objectFields {
	f := model("own", "")
	f["metadata"] = objectFields{"annotations": objectFields{annotation: "a.example"}}
	return f
}

func binding(export string) objectFields {
	return objectFields{"spec": objectFields{"reference": objectFields{"export": objectFields{"path": "root:x", "name": export}}}}
}

func store(adoption string) objectFields {
	return objectFields{"spec": objectFields{"coreModule": "module core", "adoption": adoption}}
}

// declaring returns a Store with tuples. Each tuple is written as object#relation@user.
func declaring(tuples ...string) objectFields {
	all := []any{}
	for _, t := range tuples {
		object, rest, _ := strings.Cut(t, "#")
		relation, user, _ := strings.Cut(rest, "@")
		all = append(all, objectFields{"object": object, "relation": relation, "user": user})
	}
	return objectFields{"spec": objectFields{"coreModule": "module core", "tuples": all}}
}

func conditional(text string) objectFields {
	f := declaring(text)
	f["spec"].(objectFields)["tuples"].([]any)[0].(objectFields)["condition"] = objectFields{"name": "c"}
	return f
}

func label(store any) objectFields {
	return objectFields{"metadata": objectFields{"labels": objectFields{corev1alpha1.StoreNameLabel: store}}}
}

// definition returns a CustomResourceDefinition of a kind with arbitrary fields.
func definition(name, kind, version string, labels objectFields) objectFields {
	plural, group, _ := strings.Cut(name, ".")
	return testenv.CRDFields(kinds.Kind{GroupResource: event.GroupResource{Group: group, Resource: plural}, Version: version, Kind: kind}, labels)
}

const widgets = "widgets.example.com"

func widget(store any) objectFields {
	return definition(widgets, "Widget", "v1", objectFields{corev1alpha1.StoreNameLabel: store})
}

// grantTenantRights creates a user who may write all objects that extend Stores, but has the verbs extend and adopt
// only on the Store "own".
func grantTenantRights(t *testing.T, server *testenv.KubeServer) dryRunUser {
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
	return dryRunUser{t, server.DynamicClientAs(t, "tenant"), []string{metav1.DryRunAll}}
}
