package rbac

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/topology"
)

const header = "# Generated from the table in services/internal/rbac by `make generate`: change it there.\n"

// Manifest returns the account and its rights as YAML for kubectl apply.
func (a Account) Manifest() ([]byte, error) {
	out := bytes.NewBufferString(header)
	if err := writeManifests(out, a.manifestObjects()); err != nil {
		return nil, fmt.Errorf("encoding the account of %s: %w", a.Service, err)
	}
	return out.Bytes(), nil
}

// writeManifests writes objects as YAML documents.
func writeManifests(out io.Writer, objects []any) error {
	documents := yaml.NewEncoder(out)
	documents.SetIndent(2)
	for _, object := range objects {
		node, err := yamlDocument(object)
		if err != nil {
			return err
		}
		if err := documents.Encode(node); err != nil {
			return err
		}
	}
	return documents.Close()
}

// roleManifest holds the fields of a Role or ClusterRole that the manifests use.
type roleManifest struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Rules             []Right `json:"rules"`
}

func (a Account) manifestObjects() []any {
	account := corev1.ServiceAccount{TypeMeta: typeMeta(corev1.SchemeGroupVersion.String(), "ServiceAccount"), ObjectMeta: a.objectMeta(Namespace)}
	objects := append([]any{account}, a.roleAndBinding("ClusterRole", "", a.Everywhere)...)
	if len(a.Own) > 0 {
		objects = append(objects, a.roleAndBinding("Role", Namespace, a.Own)...)
	}
	if a.Targets {
		objects = append(objects, a.targetsBinding())
	}
	if a.Service == topology.Watcher {
		objects = append(objects, targetsClusterRole())
	}
	if len(a.Secrets) > 0 {
		objects = append(objects, a.roleObject("ClusterRole", a.SecretsRoleName(), "", a.Secrets))
	}
	return objects
}

// roleAndBinding returns a role of the given kind, and its binding to the account.
func (a Account) roleAndBinding(kind, namespace string, rights []Right) []any {
	name := "entail-" + a.Service
	return []any{a.roleObject(kind, name, namespace, rights), a.bindingObject(kind, name, namespace, kind+"Binding")}
}

func (a Account) roleObject(kind, name, namespace string, rights []Right) roleManifest {
	meta := a.objectMeta(namespace)
	meta.Name = name
	return roleManifest{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), kind), ObjectMeta: meta, Rules: rights}
}

// bindingObject returns the binding of a role to the account.
func (a Account) bindingObject(kind, name, namespace, binding string) rbacv1.RoleBinding {
	meta := a.objectMeta(namespace)
	meta.Name = name
	return rbacv1.RoleBinding{
		TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), binding), ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: a.Service}},
	}
}

// SecretBindingsManifest returns RoleBindings that give the services their rights on Secrets. Apply it in each
// namespace in which services may read Secrets.
func SecretBindingsManifest() ([]byte, error) {
	var bindings []any
	for _, a := range Accounts() {
		if len(a.Secrets) > 0 {
			bindings = append(bindings, a.bindingObject("ClusterRole", a.SecretsRoleName(), "", "RoleBinding"))
		}
	}
	out := bytes.NewBufferString(header)
	if err := writeManifests(out, bindings); err != nil {
		return nil, fmt.Errorf("encoding bindings of rights on Secrets: %w", err)
	}
	return out.Bytes(), nil
}

func (a Account) objectMeta(namespace string) metav1.ObjectMeta {
	labels := map[string]string{"app.kubernetes.io/name": a.Service, "app.kubernetes.io/part-of": "entail"}
	return metav1.ObjectMeta{Name: a.Service, Namespace: namespace, Labels: labels}
}

func typeMeta(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// yamlDocument returns an object as YAML. The reason for each right is in a comment above the right.
func yamlDocument(object any) (*yaml.Node, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	var node yaml.Node
	if err := yaml.Unmarshal(data, &node); err != nil { // JSON is also YAML.
		return nil, err
	}
	restyleNode(&node)
	return &node, nil
}

// restyleNode uses block style except for lists of words, and turns the reason for a right into a comment.
func restyleNode(node *yaml.Node) {
	node.Style = 0
	if node.Kind == yaml.SequenceNode && node.Content[0].Kind == yaml.ScalarNode {
		node.Style = yaml.FlowStyle
	}
	if node.Kind == yaml.MappingNode && node.Content[0].Value == "why" {
		node.HeadComment = "# " + node.Content[1].Value
		node.Content = node.Content[2:]
	}
	for _, child := range node.Content {
		restyleNode(child)
	}
}
