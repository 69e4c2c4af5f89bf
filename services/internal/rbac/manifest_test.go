package rbac

import (
	"bytes"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/topology"
)

const header = "# Generated from the table in services/internal/rbac by `make generate`: change it there.\n"

// Manifest returns the account and its rights as YAML for kubectl apply.
func (a ServiceAccount) Manifest() ([]byte, error) {
	out := bytes.NewBufferString(header)
	if err := writeManifests(out, a.manifestObjects()); err != nil {
		return nil, fmt.Errorf("encoding the account of %s: %w", a.Service, err)
	}
	return out.Bytes(), nil
}

func (a ServiceAccount) manifestObjects() []any {
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
func (a ServiceAccount) roleAndBinding(kind, namespace string, rights []Right) []any {
	name := "entail-" + a.Service
	return []any{a.roleObject(kind, name, namespace, rights), a.bindingObject(kind, name, namespace, kind+"Binding")}
}

func (a ServiceAccount) roleObject(kind, name, namespace string, rights []Right) roleManifest {
	meta := a.objectMeta(namespace)
	meta.Name = name
	return roleManifest{TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), kind), ObjectMeta: meta, Rules: rights}
}

// bindingObject returns the binding of a role to the account.
func (a ServiceAccount) bindingObject(kind, name, namespace, binding string) rbacv1.RoleBinding {
	meta := a.objectMeta(namespace)
	meta.Name = name
	return rbacv1.RoleBinding{
		TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), binding), ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: kind, Name: name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: a.Service}},
	}
}

// SecretBindingsManifest returns bindings that give the services their rights on Secrets in the namespace in which it
// is applied.
func SecretBindingsManifest() ([]byte, error) {
	var bindings []any
	for _, a := range ServiceAccounts() {
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

func (a ServiceAccount) objectMeta(namespace string) metav1.ObjectMeta {
	labels := map[string]string{"app.kubernetes.io/name": a.Service, "app.kubernetes.io/part-of": "entail"}
	return metav1.ObjectMeta{Name: a.Service, Namespace: namespace, Labels: labels}
}

// targetsRole aggregates the ClusterRoles with the label targetsLabel.
const targetsRole = "entail-targets"

// targetsClusterRole returns the ClusterRole that aggregates those of [TargetRolesManifest]. The kinds are not known
// when it is applied.
func targetsClusterRole() any {
	return struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		AggregationRule   rbacv1.AggregationRule `json:"aggregationRule"`
	}{
		typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRole"),
		metav1.ObjectMeta{Name: targetsRole, Labels: map[string]string{"app.kubernetes.io/part-of": "entail"}},
		rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{targetsLabel: "true"}}}},
	}
}

// targetsBinding binds that ClusterRole to the account.
func (a ServiceAccount) targetsBinding() any {
	meta := a.objectMeta("")
	meta.Name = targetsRole + "-" + a.Service
	return rbacv1.ClusterRoleBinding{
		TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"), ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetsRole},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: a.Service}},
	}
}

// PeopleRolesManifest returns the roles for people as YAML for kubectl apply.
func PeopleRolesManifest() ([]byte, error) {
	var objects []any
	for _, r := range UserRoles() {
		labels := map[string]string{"app.kubernetes.io/part-of": "entail"}
		if r.PartOf != "" {
			labels["rbac.authorization.k8s.io/aggregate-to-"+r.PartOf] = "true"
		}
		objects = append(objects, roleManifest{
			TypeMeta:   typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRole"),
			ObjectMeta: metav1.ObjectMeta{Name: r.Name, Labels: labels}, Rules: r.Rights,
		})
	}
	out := bytes.NewBufferString(header)
	if err := writeManifests(out, objects); err != nil {
		return nil, fmt.Errorf("encoding the roles for people: %w", err)
	}
	return out.Bytes(), nil
}
