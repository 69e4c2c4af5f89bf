//go:build integration

package apitest_test

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/entail-dev/entail/services/internal/testenv"
)

// publicManifests holds one object of each kind with exactly the fields of the public operator.
var publicManifests = map[string]string{ //nolint:gochecknoglobals // A map cannot be a constant.
	"OpensearchUser": `
spec: {opensearchCluster: {name: my-cluster}, passwordFrom: {name: sample, key: password, optional: true},
  opendistroSecurityRoles: [own-role], backendRoles: [kibanauser], attributes: {team: search}}
status: {state: CREATED, reason: "", managedCluster: u}`,
	"OpensearchRole": `
spec: {opensearchCluster: {name: my-cluster}, clusterPermissions: [cluster_composite_ops, cluster_monitor],
  indexPermissions: [{indexPatterns: [logs*], dls: "", fls: [a], allowedActions: [index, read], maskedFields: [b]}],
  tenantPermissions: [{tenantPatterns: [t], allowedActions: [kibana_all_read]}]}
status: {state: IGNORED, reason: "", existingRole: true, managedCluster: u}`,
	"OpensearchUserRoleBinding": `
spec: {opensearchCluster: {name: my-cluster}, users: [sample], backendRoles: [other], roles: [sample]}
status: {state: PENDING, reason: "", managedCluster: u, provisionedRoles: [sample], provisionedUsers: [sample], provisionedBackendRoles: [other]}`,
	"OpensearchTenant": `
spec: {opensearchCluster: {name: my-cluster}, description: a tenant}
status: {state: CREATED, existingTenant: false, managedCluster: u}`,
	"OpensearchActionGroup": `
spec: {opensearchCluster: {name: my-cluster}, allowedActions: ["indices:admin/aliases/get"], type: index, description: a group}
status: {state: CREATED, existingActionGroup: false, managedCluster: u}`,
	"OpenSearchCluster": `
spec: {general: {version: 2.19.4, serviceName: my-cluster, httpPort: 9200, vendor: opensearch}, dashboards: {enable: true, replicas: 1},
  security: {config: {adminCredentialsSecret: {name: admin}, securityConfigSecret: {name: config}}, tls: {http: {generate: true}, transport: {generate: true, perNode: true}}},
  nodePools: [{component: nodes, replicas: 3, diskSize: 30Gi, roles: [data, cluster_manager]}]}
status: {phase: RUNNING, initialized: true, health: green, availableNodes: 3}`,
}

func TestOpenSearchSchemaKeepsFieldsOfPublicOperator(t *testing.T) {
	server := testenv.StartKube(t)
	for kind, manifest := range publicManifests {
		o := searchObject(kind, nil)
		if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
			t.Fatal(err)
		}
		status := o.Object["status"]
		api := objectsAs(t, server, "", o)
		made, err := api.Create(t.Context(), o, metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			t.Errorf("%s: %v", kind, err)
			continue
		}
		made.Object["status"] = status
		made, err = api.UpdateStatus(t.Context(), made, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict})
		if err != nil {
			t.Errorf("%s: its status: %v", kind, err)
			continue
		}
		for _, part := range []string{"spec", "status"} {
			want, _, _ := unstructured.NestedMap(o.Object, part)
			if part == "status" {
				want, _ = status.(map[string]any)
			}
			for field := range want {
				if _, kept, _ := unstructured.NestedFieldNoCopy(made.Object, part, field); !kept {
					t.Errorf("%s: %s.%s is lost", kind, part, field)
				}
			}
		}
		if err := api.Delete(t.Context(), made.GetName(), metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}
}
