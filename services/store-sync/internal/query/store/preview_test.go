package store

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/model"
	"github.com/entail-dev/entail/services/store-sync/module"
	"github.com/entail-dev/entail/services/store-sync/module/moduletest"
	"github.com/entail-dev/entail/services/store-sync/policymodule"
	"github.com/entail-dev/entail/services/store-sync/store"
	"github.com/entail-dev/entail/services/store-sync/store/plan"
)

const (
	tenant = "resourceTypes:\n  - {name: tenant, idPrefix: idntten}\nactions: [{name: tenant_get}]\n" +
		"actionBindings: [{actionName: tenant_get, typeName: tenant, conditions: [{roleBinding: {}}]}]\n"
	project = "resourceTypes:\n  - {name: project, idPrefix: entrprj, relationships: [{relation: parent, targetTypes: [{name: tenant}]}]}\n" +
		"actionBindings: [{actionName: tenant_get, typeName: project, conditions: [{relationshipAction: {relation: parent, actionName: tenant_get}}]}]\n"
)

// server returns a server with a Store, "demo", in which the PolicyDocument team/tenants is live, and with modules of that Store.
func server(t *testing.T, modules ...corev1alpha1.AuthorizationModel) *Server {
	t.Helper()
	feed := moduletest.NewInformerFeeder(t)
	shared := module.NewStoreListers(feed.View, moduletest.Cluster)
	state, merges := store.NewState(shared), store.NewMergeCache(model.Limits{})
	policies := policymodule.New(feed.View, &module.Applier{State: shared}, state.MergeAfterPlanFunc(merges))
	state.AddProviders(policies)
	s := New(state, merges, policies, nil, func() error { return nil })
	feed.PutObject(kinds.Stores(), moduletest.Cluster, "demo", corev1alpha1.Store{
		ObjectMeta: metav1.ObjectMeta{Name: "demo"}, Spec: corev1alpha1.StoreSpec{CoreModule: "module core\n\ntype user\n\ntype group\n"},
	})
	d := iaplv1alpha1.PolicyDocument{ObjectMeta: metav1.ObjectMeta{Name: "tenants", Namespace: "team"}}
	d.Spec.StoreRef.Name = "demo"
	if err := yaml.UnmarshalStrict([]byte(tenant), &d.Spec.Policy); err != nil {
		t.Fatal(err)
	}
	feed.PutObject(kinds.PolicyDocuments(), moduletest.Cluster, "tenants", d, func(c *event.Change) { c.Key.Namespace = "team" })
	for _, m := range modules {
		feed.PutObject(kinds.AuthorizationModels(), moduletest.Cluster, m.Name, m)
	}
	key := module.StoreKey("demo", moduletest.Cluster)
	_, todo := plan.DecideModel(state.Snapshot(key, plan.Observed{}), policies.RegisteredDocuments(key), model.Limits{})
	for _, m := range todo.Apply {
		feed.PutObject(kinds.AuthorizationModels(), moduletest.Cluster, m.Name, m)
	}
	return s
}

func preview(t *testing.T, replaces string, files ...string) (*storev1.PreviewModelResponse, error) {
	t.Helper()
	r := &storev1.PreviewModelRequest{Name: "demo", Replaces: replaces, Documents: &policyv1.Files{}}
	for i, content := range files {
		r.Documents.Files = append(r.Documents.Files, &policyv1.File{Name: fmt.Sprintf("%c.yaml", 'a'+i), Content: []byte(content)})
	}
	return server(t).PreviewModel(t.Context(), r)
}

func manifest(name, text string) string {
	return "apiVersion: iapl.infratographer.com/v1alpha1\nkind: PolicyDocument\nmetadata: {name: " + name + ", namespace: team}\nspec:\n" +
		"  storeRef: {name: demo}\n  " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n  ") + "\n"
}

func TestPreviewModelWithDocuments(t *testing.T) {
	owned := strings.Replace(tenant, "idntten}", "idntten, relationships: [{relation: parent, targetTypes: [{name: tenant}]}]}", 1)
	for name, test := range map[string]struct {
		replaces string
		files    []string
		message  string
		changes  []string
		found    []string
	}{
		"a document more":        {files: []string{project}, changes: []string{"ADDED project", "ADDED project#parent", "ADDED project#tenant_get"}},
		"a manifest more":        {files: []string{manifest("projects", project)}, changes: []string{"ADDED project", "ADDED project#parent", "ADDED project#tenant_get"}},
		"a new version":          {replaces: "team/tenants", files: []string{owned}, changes: []string{"ADDED tenant#parent"}},
		"a manifest of the same": {files: []string{manifest("tenants", owned), project}, changes: []string{"ADDED project", "ADDED project#parent", "ADDED project#tenant_get", "ADDED tenant#parent"}},
		"several files":          {files: []string{"unions: [{name: all, resourceTypes: [{name: project}]}]\n", project}, changes: []string{"ADDED project", "ADDED project#parent", "ADDED project#tenant_get"}},
		"one that says the same": {files: []string{manifest("tenants", tenant)}},
		"what another has":       {files: []string{tenant}, message: "documents: 3", found: []string{"policydocument/preview/documents:0:0: spec.actions[0].name: E-DUP-ACTION", "E-DUP-TYPE"}},
		"what the core module has": {
			files: []string{"resourceTypes: [{name: group, idPrefix: idngrp}]\n"}, message: "documents: 1",
			found: []string{"policydocument/preview/documents:0:0: spec.resourceTypes[0].name: E-COLLISION"},
		},
		"its own type, gone":       {replaces: "team/tenants", files: []string{project}, message: "documents: 3", changes: []string{"REMOVED role", "REMOVED role#subject", "REMOVED tenant#tenant_get", "REMOVED tenant#tenant_get_role"}, found: []string{"policydocument/team/tenants:0:0: spec.resourceTypes[0].relationships[0].targetTypes[0]: E-UNKNOWN-TYPE"}},
		"what cannot be read":      {files: []string{"resourceTypes: {\n"}, message: "documents: 1", found: []string{"a.yaml:1:16: : E-SYNTAX"}},
		"more errors than anybody": {files: []string{"actions:\n" + strings.Repeat("- {name: UP}\n", 300)}, message: "documents: 599"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := preview(t, test.replaces, test.files...)
			if err != nil {
				t.Fatal(err)
			}
			if got.GetAccepted() != (test.message == "") || !strings.Contains(got.GetMessage(), test.message) {
				t.Errorf("accepted %t, saying %q", got.GetAccepted(), got.GetMessage())
			}
			var changed []string
			for _, c := range got.GetChanges() {
				d := c.GetDefinition()
				changed = append(changed, strings.TrimPrefix(c.GetKind().String(), "KIND_")+" "+strings.TrimSuffix(d.GetType()+"#"+d.GetRelation(), "#"))
			}
			if !slices.Equal(changed, test.changes) {
				t.Errorf("changes %q, want %q", changed, test.changes)
			}
			var told strings.Builder
			for _, f := range got.GetFindings().GetDiagnostics() {
				p := f.GetPlace()
				fmt.Fprintf(&told, "%s:%d:%d: %s: %s %s\n", p.GetFile(), p.GetLine(), p.GetColumn(), p.GetPath(), f.GetCode(), f.GetMessage())
			}
			for _, want := range test.found {
				if !strings.Contains(told.String(), want) {
					t.Errorf("found\n%swant %q", told.String(), want)
				}
			}
		})
	}
	if _, err := preview(t, "team/nobody", project); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("in the place of nobody: %v", err)
	}
}

func TestPreviewModelReportsInvalidDocuments(t *testing.T) {
	tells := func(request *storev1.PreviewModelRequest) (accepted bool, state, message string) {
		t.Helper()
		request.Name = "demo"
		got, err := server(t).PreviewModel(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range got.GetModules() {
			if m.GetSource() == "policydocument/team/tenants" {
				state, message = m.GetState(), m.GetMessage()
			}
		}
		return got.GetAccepted(), state, message
	}
	const core = "module core\n\ntype user\n\ntype group\n\ntype tenant\n"
	if accepted, state, message := tells(&storev1.PreviewModelRequest{Module: core, Replaces: "-"}); !accepted || state != "LastGoodLive" ||
		!strings.Contains(message, "E-COLLISION") {
		t.Errorf("with the core module %s: accepted %t, got %q %q", core, accepted, state, message)
	}
	if accepted, state, _ := tells(&storev1.PreviewModelRequest{Module: "module newcomer\n\ntype tenant\n"}); accepted || state != "Merged" {
		t.Errorf("with a newcomer: accepted %t, got %q", accepted, state)
	}
}

func TestPreviewModelListsLosses(t *testing.T) {
	docs := corev1alpha1.AuthorizationModel{ObjectMeta: metav1.ObjectMeta{Name: "docs"}}
	docs.Spec.StoreRef.Name, docs.Spec.Model = "demo", "module docs\n\ntype doc\n  relations\n    define viewer: [group]\n"
	for i := range maxLostTuples + 5 {
		docs.Spec.Tuples = append(docs.Spec.Tuples, corev1alpha1.Tuple{Object: fmt.Sprintf("doc:%02d", i), Relation: "viewer", User: "group:g"})
	}
	docs.Spec.Tuples = append(docs.Spec.Tuples, corev1alpha1.Tuple{Object: "doc:1", Relation: "viewer", User: "nobody:n"}) // It is invalid in any case.
	lost := func(module string) (names []string, tuples []*storev1.LostTuple, count int32) {
		got, err := server(t, docs).PreviewModel(t.Context(), &storev1.PreviewModelRequest{Name: "demo", Replaces: "-", Module: module})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range got.GetChanges() {
			if d := c.GetDefinition(); d.GetSource() != "" {
				names = append(names, strings.TrimSuffix(d.GetType()+"#"+d.GetRelation(), "#")+" of "+d.GetSource())
			}
		}
		return names, got.GetLostTuples(), got.GetLostTupleCount()
	}
	names, tuples, count := lost("module core\n\ntype user\n")
	if want := []string{"doc of authorizationmodel/docs", "doc#viewer of authorizationmodel/docs", "group of core"}; !slices.Equal(names, want) {
		t.Errorf("got lost definitions %q, want %q", names, want)
	}
	if count != maxLostTuples+5 || len(tuples) != maxLostTuples || tuples[0].GetObject() != "doc:00" || tuples[0].GetOwner() != "authorizationmodel/docs" {
		t.Errorf("got %d lost tuples, %d listed: %v", count, len(tuples), tuples)
	}
	if names, _, count := lost("module core\n\ntype user\n\ntype group\n\ntype more\n"); len(names) > 0 || count > 0 {
		t.Errorf("a wider core module: got lost definitions %q, %d lost tuples, want none", names, count)
	}
}
