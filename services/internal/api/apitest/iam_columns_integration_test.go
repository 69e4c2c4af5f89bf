//go:build integration

package apitest_test

import (
	"maps"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestIAMColumnsShowManifests(t *testing.T) {
	server := testenv.StartKube(t)
	tests := map[string]map[string]string{
		"compute.example.com-workload":       {"Kind": "Workload", "Ready": "Unknown"},
		"compute.example.com-workload-admin": {"Display Name": "Workload Admin", "Launch Stage": "Beta", "Ready": "Unknown"},
		"on-an-object":                       {"Role": "compute.example.com-workload-admin", "Resource Kind": "Workload", "Resource Name": "web", "Ready": "Unknown"},
		"on-a-kind":                          {"Resource Kind": "Workload", "Ready": "Unknown"},
		"alice-staff":                        {"User": "alice", "Group": "staff"},
		"alice":                              {"Email": "alice@example.com", "Given Name": "Alice", "Family Name": "Doe", "State": "Active", "Ready": "Unknown"},
		"builder":                            {"State": "Active"},
		"acme":                               {"Display Name": "Acme", "Ready": "Unknown"},
		"web":                                {"Organization": "acme", "Ready": "Unknown"},
	}
	for name, want := range tests {
		t.Run(name, func(t *testing.T) {
			row := readColumns(t, server, create(t, server, manifestNamed(t, name)))
			for column, value := range want {
				if row[column] != value {
					t.Errorf("%s is %q, want %q; there are %v", column, row[column], value, slices.Sorted(maps.Keys(row)))
				}
			}
		})
	}
}

// Only the object's name may be empty, in a binding on a whole kind.
func TestIAMColumnsAreFilled(t *testing.T) {
	server := testenv.StartKube(t)
	seen := map[string]bool{}
	for _, manifest := range manifests(t) {
		if manifest.GetKind() == "Role" || manifest.GetKind() == "Organization" {
			manifest.SetAnnotations(map[string]string{"kubernetes.io/display-name": "Some Name"})
		}
		if manifest.GetKind() == "User" {
			manifest.Object["spec"] = map[string]any{"email": "a@example.com", "givenName": "A", "familyName": "B"}
		}
		stored := create(t, server, manifest)
		status, _ := stored.Object["status"].(map[string]any)
		if status == nil {
			status = map[string]any{}
		}
		status["conditions"] = []any{map[string]any{
			"type": "Ready", "status": "True", "reason": "Odd", "message": "odd", "lastTransitionTime": "2026-01-02T03:04:05Z",
		}}
		if stored.GetKind() == "ServiceAccount" {
			status["email"] = "a@example.com"
		}
		stored.Object["status"] = status
		if _, err := objectsAs(t, server, "", stored).UpdateStatus(t.Context(), stored, metav1.UpdateOptions{FieldValidation: metav1.FieldValidationStrict}); err != nil {
			t.Fatal(err)
		}
		row := readColumns(t, server, stored)
		_, ofKind, _ := unstructured.NestedMap(stored.Object, "spec", "resourceSelector", "resourceKind")
		for column, value := range row {
			if value == "" && (!ofKind || column != "Resource Name") {
				t.Errorf("of %s %s, %s is empty", stored.GetKind(), stored.GetName(), column)
			}
		}
		if row["Ready"] != "True" || row["Age"] == "" {
			t.Errorf("%s %s is shown as %v", stored.GetKind(), stored.GetName(), row)
		}
		seen[stored.GetKind()] = true
	}
	if len(seen) != 9 {
		t.Errorf("there are manifests of %v", slices.Sorted(maps.Keys(seen)))
	}
}

// readColumns returns the cells of an object's row by column name.
func readColumns(t *testing.T, server *testenv.KubeServer, u *unstructured.Unstructured) map[string]string {
	t.Helper()
	table := readTable(t, server, u)
	row := map[string]string{}
	for i, column := range table.ColumnDefinitions {
		row[column.Name], _ = table.Rows[0].Cells[i].(string)
	}
	return row
}
