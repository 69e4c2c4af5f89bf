package rbac

import (
	"bytes"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/entail-dev/entail/services/internal/event"
)

// targetsLabel marks the ClusterRoles, one for each kind of targets, that a role of the manifests aggregates.
const targetsLabel = "entail.dev/aggregate-to-targets"

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
