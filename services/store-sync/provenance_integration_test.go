//go:build integration

package storesync_test

import (
	"fmt"
	"strings"
	"testing"

	"connectrpc.com/connect"

	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestGeneratedModulesNameTheirAPI(t *testing.T) {
	b := newTestEnv(t)
	b.StartReflector()
	stores := clientOf(b.serve())
	b.applyStore("demo", withAccounts)
	b.define(widgets("example.com", "demo"))
	b.awaitModule("widgets-demo", "Merged=True/Merged")
	b.awaitTypes("core_namespace", "example_com_widget")
	b.AwaitNoCalls()
	got, err := stores.GetModel(t.Context(), &storev1.GetModelRequest{Name: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	sources := map[string]string{}
	for _, d := range got.GetDefinitions() {
		sources[d.GetType()+"#"+d.GetRelation()] = d.GetModule() + " of " + d.GetSource()
	}
	for part, want := range map[string]string{
		"core_platform-mesh_io_account#":                                                   "core of core",
		"core_platform-mesh_io_account#list_core_namespaces":                               "internal_core_types_namespaces of discovered/namespaces",
		"core_platform-mesh_io_account#create_example_com_widgets":                         "widgets of authorizationmodel/widgets-demo",
		"core_platform-mesh_io_account#create_ac_authorization_k8s_io_clusterrolebindings": "internal_core_types_clusterrolebindings of discovered/rbac.authorization.k8s.io/clusterrolebindings",
		"example_com_widget#get":                                                           "widgets of authorizationmodel/widgets-demo",
		"rbac_authorization_k8s_io_role#escalate":                                          "internal_core_types_roles of discovered/rbac.authorization.k8s.io/roles",
	} {
		if sources[part] != want {
			t.Errorf("%s is from %q, want %q", part, sources[part], want)
		}
	}
	preview, err := stores.PreviewModel(t.Context(), &storev1.PreviewModelRequest{
		Name: "demo", Module: "module mine\n\ntype core_namespace\n  relations\n    define reader: [user]\n",
	})
	if err != nil || preview.GetAccepted() || !strings.Contains(preview.GetMessage(), "already defined by discovered/namespaces") {
		t.Fatalf("a newcomer takes over what is discovered and live: %v (%v)", preview.GetMessage(), err)
	}
	b.OpenFGA.FailBefore(failing("WriteAuthorizationModel"))
	b.applyModule("docs", "demo", dsl("folder"))
	testenv.Eventually(t, soon, func() error { return liveOnly(stores.GetModel(t.Context(), &storev1.GetModelRequest{Name: "demo"})) })
	b.OpenFGA.FailBefore(nil)
	b.awaitTypes("folder")
	if _, err := stores.GetModel(t.Context(), &storev1.GetModelRequest{Name: "nobody"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("an unknown Store: %v, want NotFound", err)
	}
}

// liveOnly expects a model that differs from the desired one, so the source of its parts is unknown.
func liveOnly(m *storev1.GetModelResponse, err error) error {
	if err != nil {
		return err
	}
	for _, d := range m.GetDefinitions() {
		if d.GetSource() != "" || d.GetType() == "folder" {
			return fmt.Errorf("%s is of %s", d.GetType(), d.GetSource())
		}
	}
	return nil
}
