package rbac

import (
	"bytes"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
)

const (
	// targetsRole is a ClusterRole that aggregates all ClusterRoles with the label targetsLabel. There is one of these
	// for each target kind.
	targetsRole  = "entail-targets"
	targetsLabel = "entail.dev/aggregate-to-targets"
)

// targetsClusterRole returns the ClusterRole that aggregates the roles of [TargetRolesManifest]. It uses aggregation
// because the target kinds are not known when it is applied.
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

// targetsBinding binds the role of targetsClusterRole to the account.
func (a Account) targetsBinding() any {
	meta := a.objectMeta("")
	meta.Name = targetsRole + "-" + a.Service
	return rbacv1.ClusterRoleBinding{
		TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRoleBinding"), ObjectMeta: meta,
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: targetsRole},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: Namespace, Name: a.Service}},
	}
}

// TargetRolesManifest returns the ClusterRoles that let services read the objects of kinds, as YAML for kubectl apply.
// To apply them, a user must have these rights or the verb escalate.
func TargetRolesManifest(of []event.GroupResource) ([]byte, error) {
	var objects []any
	for _, kind := range of {
		kind.Target = false
		objects = append(objects, roleManifest{
			TypeMeta: typeMeta(rbacv1.SchemeGroupVersion.String(), "ClusterRole"),
			ObjectMeta: metav1.ObjectMeta{Name: "entail-target-" + kind.String(), Labels: map[string]string{
				"app.kubernetes.io/part-of": "entail", targetsLabel: "true",
			}},
			Rules: []Right{resourceRight("Services read the metadata of these objects, never their content.",
				verbList("get", "list", "watch"), kind.Group, kind.Resource)},
		})
	}
	var out bytes.Buffer
	if err := writeManifests(&out, objects); err != nil {
		return nil, fmt.Errorf("encoding rights on targets: %w", err)
	}
	return out.Bytes(), nil
}
