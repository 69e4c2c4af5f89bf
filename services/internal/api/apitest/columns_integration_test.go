//go:build integration

package apitest_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// printedObject holds an object and the row that "kubectl get" prints for it, without and with -o wide.
type printedObject struct {
	kind               kinds.Kind
	namespace, short   string
	spec, status       string
	columns, wide, row string
}

func allPrintedObjects() []printedObject {
	const ready = `"conditions":[{"type":"Ready","status":"False","reason":"Because","message":"do this","lastTransitionTime":"2026-01-02T03:04:05Z"}`
	return []printedObject{
		{
			kind: kinds.Stores(), short: "fgastore", spec: `{"coreModule":"module core"}`,
			status: `{"storeId":"01S","authorizationModelId":"01M","tupleCount":7,` + ready +
				`,{"type":"Deleting","status":"True","reason":"Blocked","message":"a waits","lastTransitionTime":"2026-01-02T03:04:05Z"}]}`,
			columns: "Name Ready Reason Store ID Model ID Tuples Deletion Age", wide: "Message", row: "shown False Because 01S 01M 7 a waits do this",
		},
		{
			kind: kinds.AuthorizationModels(), short: "fgamodel", spec: `{"storeRef":{"name":"demo"},"model":"module x"}`, status: `{"tupleCount":7,` + ready + `]}`,
			columns: "Name Ready Reason Store Tuples Age", wide: "Message", row: "shown False Because demo 7 do this",
		},
		{
			kind: kinds.PolicyDocuments(), namespace: "default", short: "poldoc", spec: `{"storeRef":{"name":"demo"}}`,
			status:  `{` + ready + `,{"type":"Valid","status":"True","reason":"Valid","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}`,
			columns: "Name Ready Reason Valid Store Age", wide: "Message", row: "shown False Because True demo do this",
		},
		{
			kind: kinds.ImpliedRoles(), namespace: "default", short: "ir", spec: `{"inference_rule":{"parent_role":"admin","child_role":"view","child_kind":"ClusterRole"}}`,
			status:  `{"inferences":{"child_roles":["ClusterRole/view"]},` + ready + `,{"type":"Acyclic","status":"True","reason":"NoCycle","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"},{"type":"Judged","status":"False","reason":"Before","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}`,
			columns: "Name Parent Child Ready Reason Acyclic Age", wide: "Parent Kind,Child Kind,Implies,Judged,Message",
			row: `shown admin view False Because True Role ClusterRole ["ClusterRole/view"] False do this`,
		},
	}
}

func TestColumnsShowSpecAndStatus(t *testing.T) {
	k := testenv.StartKube(t)
	for _, s := range allPrintedObjects() {
		t.Run(s.kind.Kind, func(t *testing.T) {
			u := &unstructured.Unstructured{}
			text := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"metadata":{"name":"shown"},"spec":%s}`, s.kind.GroupVersionResource().GroupVersion(), s.kind.Kind, s.spec)
			if err := u.UnmarshalJSON([]byte(text)); err != nil {
				t.Fatal(err)
			}
			objects := k.DynamicClient(t).Resource(s.kind.GroupVersionResource()).Namespace(s.namespace)
			u, err := objects.Create(t.Context(), u, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			var status map[string]any
			if err := json.Unmarshal([]byte(s.status), &status); err != nil {
				t.Fatal(err)
			}
			u.Object["status"] = status
			if _, err := objects.UpdateStatus(t.Context(), u, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			s.check(t, readTable(t, k, u))
			s.checkDiscovery(t, k.TypedClient(t).Discovery())
		})
	}
}

// check compares the object's row with the expected one, except for the age.
func (s printedObject) check(t *testing.T, table metav1.Table) {
	t.Helper()
	var columns, wide, row []string
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			columns = append(columns, column.Name)
		} else {
			wide = append(wide, column.Name)
		}
		if column.Name != "Age" {
			row = append(row, fmt.Sprint(table.Rows[0].Cells[i]))
		}
	}
	if got := strings.Join(columns, " "); got != s.columns {
		t.Errorf("columns are %s, want %s", got, s.columns)
	}
	if got := strings.Join(wide, ","); got != s.wide {
		t.Errorf("with -o wide also %s, want %s", got, s.wide)
	}
	if got := strings.Join(row, " "); got != s.row {
		t.Errorf("row is %s, want %s", got, s.row)
	}
}

// checkDiscovery checks the names with which kubectl finds the kind.
func (s printedObject) checkDiscovery(t *testing.T, client discovery.DiscoveryInterface) {
	t.Helper()
	list, err := client.ServerResourcesForGroupVersion(s.kind.GroupVersionResource().GroupVersion().String())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == s.kind.Resource })
	if i < 0 || !slices.Contains(list.APIResources[i].ShortNames, s.short) || !slices.Contains(list.APIResources[i].Categories, "entail") {
		t.Errorf("found are %+v", list.APIResources)
	}
	if list.APIResources[i].Namespaced == s.kind.ClusterScoped {
		t.Errorf("it has a namespace: %v", list.APIResources[i].Namespaced)
	}
}
