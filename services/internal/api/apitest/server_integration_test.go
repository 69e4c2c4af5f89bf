//go:build integration

package apitest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

const (
	namespace = metav1.NamespaceDefault
	// soon bounds the time until a policy or a right takes effect.
	soon = 60 * time.Second
)

// resourceOf returns the resource of a kind, such as "users" for "User".
func resourceOf(kind string) string { return strings.TrimSuffix(strings.ToLower(kind), "s") + "s" }

// objectsAs returns a client for u's kind in u's namespace as a user. An empty name means the administrator.
func objectsAs(t *testing.T, server *testenv.KubeServer, user string, u *unstructured.Unstructured) dynamic.ResourceInterface {
	t.Helper()
	resource := u.GroupVersionKind().GroupVersion().WithResource(resourceOf(u.GetKind()))
	return server.DynamicClientAs(t, user).Resource(resource).Namespace(u.GetNamespace())
}

// dryRun returns the options of a strict request that stores nothing.
func dryRun() metav1.CreateOptions {
	return metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}, FieldValidation: metav1.FieldValidationStrict}
}

// expectError fails the test unless the answer is as expected; see compareError.
func expectError(t *testing.T, err error, want ...string) {
	t.Helper()
	if err := compareError(err, want...); err != nil {
		t.Error(err)
	}
}

// compareError returns an error if an answer of the API server differs from the expected one. Without texts, or with an
// empty text, the request must be accepted. Otherwise it must be refused with every text.
func compareError(err error, want ...string) error {
	switch text := strings.Join(want, ""); {
	case text == "" && err != nil:
		return fmt.Errorf("got a refusal, want none: %w", err)
	case text != "" && err == nil:
		return fmt.Errorf("got no refusal, want %q", want)
	}
	for _, text := range want {
		if err != nil && !strings.Contains(err.Error(), text) {
			return fmt.Errorf("got a refusal without %q: %w", text, err)
		}
	}
	return nil
}

// readTable reads an object as the table that kubectl prints.
func readTable(t *testing.T, server *testenv.KubeServer, u *unstructured.Unstructured) metav1.Table {
	t.Helper()
	gvk := u.GroupVersionKind()
	raw, err := server.TypedClient(t).Discovery().RESTClient().Get().AbsPath("/apis", gvk.Group, gvk.Version).
		NamespaceIfScoped(u.GetNamespace(), u.GetNamespace() != "").Resource(resourceOf(gvk.Kind)).Name(u.GetName()).
		SetHeader("Accept", "application/json;as=Table;v=v1;g=meta.k8s.io").Do(t.Context()).Raw()
	if err != nil {
		t.Fatal(err)
	}
	var table metav1.Table
	if err := json.Unmarshal(raw, &table); err != nil || len(table.Rows) != 1 {
		t.Fatalf("got %s (%v), want a table of one row", raw, err)
	}
	return table
}

// lacksRight reports whether RBAC refused a request because the user has no such right.
func lacksRight(err error) bool {
	return err != nil && strings.Contains(err.Error(), "cannot create resource")
}
