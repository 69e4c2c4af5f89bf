//go:build integration

package storesync_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"connectrpc.com/connect"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
)

func TestPreviewModelAndDiffModel(t *testing.T) {
	b := newTestEnv(t)
	stores := clientOf(b.serve())
	b.applyStore("demo")
	b.applyModule("folders", "demo", dsl("folder"))
	b.applyStore("broken", func(s *corev1alpha1.StoreSpec) {
		s.CoreModule = "module core\n\ntype x\n  relations\n    define a: [nothing]\n"
	})
	b.StartReflector()
	b.awaitModule("folders", "Merged=True/Merged")
	b.await("broken", "ModelSynced=False/InvalidCore")
	b.AwaitNoCalls()
	first := b.store("demo").Status.AuthorizationModelID
	_, writes := b.since()

	expectProvenance(t, stores)
	for name, test := range previews() {
		t.Run(name, func(t *testing.T) {
			test.request.Name = "demo"
			got, err := stores.PreviewModel(t.Context(), test.request)
			if err != nil {
				t.Fatal(err)
			}
			if got.GetAccepted() != test.accepted || !strings.Contains(got.GetMessage(), test.message) {
				t.Errorf("accepted %t, saying %q; want %t and %q", got.GetAccepted(), got.GetMessage(), test.accepted, test.message)
			}
			if all := changeKinds(got.GetChanges()); !slices.Equal(all, test.changes) {
				t.Errorf("changes %q, want %q", all, test.changes)
			}
		})
	}
	if writes() != 0 || b.store("demo").Status.AuthorizationModelID != first {
		t.Errorf("previews wrote: %d writes, model %s", writes(), b.store("demo").Status.AuthorizationModelID)
	}

	b.applyModule("groups", "demo", dsl("group"))
	b.awaitModule("groups", "Merged=True/Merged")
	b.names(first)
	for name, request := range map[string]*storev1.DiffModelRequest{
		"from an old model to the live one":  {FromModelId: first, ToModelId: b.store("demo").Status.AuthorizationModelID},
		"from an old model to what is asked": {FromModelId: first},
	} {
		request.Name = "demo"
		got, err := stores.DiffModel(t.Context(), request)
		if all := changeKinds(got.GetChanges()); err != nil || !slices.Equal(all, []string{"ADDED group", "ADDED group#reader"}) {
			t.Errorf("%s: %q, %v", name, all, err)
		}
	}
	if got, err := stores.DiffModel(t.Context(), &storev1.DiffModelRequest{Name: "demo"}); err != nil || len(got.GetChanges()) != 0 {
		t.Errorf("what is live is what is asked for: %v, %v", got, err)
	}
	for name, request := range map[string]*storev1.DiffModelRequest{
		"an unknown model":        {Name: "demo", FromModelId: "01HZZZZZZZZZZZZZZZZZZZZZZZ"},
		"an unknown Store":        {Name: "nobody"},
		"a Store without a model": {Name: "broken"},
	} {
		if _, err := stores.DiffModel(t.Context(), request); connect.CodeOf(err) != connect.CodeNotFound {
			t.Errorf("%s: %v, want NotFound", name, err)
		}
	}
	if _, err := stores.PreviewModel(t.Context(), &storev1.PreviewModelRequest{Name: "demo"}); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("a preview of nothing: %v, want InvalidArgument", err)
	}
	if _, err := stores.PreviewModel(t.Context(), &storev1.PreviewModelRequest{Name: "demo", Module: "module x", Replaces: "nobody"}); connect.CodeOf(err) != connect.CodeNotFound {
		t.Errorf("a module that is not there: %v, want NotFound", err)
	}
}

type previewTest struct {
	request  *storev1.PreviewModelRequest
	accepted bool
	message  string
	changes  []string
}

func previews() map[string]previewTest {
	return map[string]previewTest{
		"a module more": {
			request: &storev1.PreviewModelRequest{Module: dsl("group")}, accepted: true,
			changes: []string{"ADDED group", "ADDED group#reader"},
		},
		"a module in place of another": {
			request: &storev1.PreviewModelRequest{Module: dsl("group"), Replaces: "folders"}, accepted: true,
			changes: []string{"REMOVED folder", "REMOVED folder#reader", "ADDED group", "ADDED group#reader"},
		},
		"a core module that gives others more": {
			request: &storev1.PreviewModelRequest{
				Module: "module core\n\ntype user\n\ntype robot\n\ntype document\n  relations\n    define owner: [user, robot]\n", Replaces: "-",
			}, accepted: true,
			changes: []string{"CHANGED document#owner +robot", "ADDED robot"},
		},
		"documents": {
			request: &storev1.PreviewModelRequest{Documents: documents(tenantPart)}, accepted: true,
			changes: []string{"ADDED tenant", "ADDED tenant#parent"},
		},
		"documents with errors": {
			request: &storev1.PreviewModelRequest{Documents: documents(projectPart)}, message: "errors in the documents: 1",
		},
		"a module that does not parse": {
			request: &storev1.PreviewModelRequest{Module: "module x\n\ntype a\n  relations\n    define b [user]\n"}, message: "line 5:",
		},
		"a module that conflicts": {
			request: &storev1.PreviewModelRequest{Module: dsl("document")}, message: "already defined by core",
		},
		"a core module that cannot be": {
			request: &storev1.PreviewModelRequest{Module: "module core\n", Replaces: "-"}, message: "no module defines a type",
		},
	}
}

func documents(content string) *policyv1.Files {
	return &policyv1.Files{Files: []*policyv1.File{{Name: "a.yaml", Content: []byte(content)}}}
}

func expectProvenance(t *testing.T, stores storev1connect.StoreServiceClient) {
	t.Helper()
	got, err := stores.GetModel(t.Context(), &storev1.GetModelRequest{Name: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, d := range got.GetDefinitions() {
		all = append(all, fmt.Sprintf("%s#%s of %s, %s", d.GetType(), d.GetRelation(), d.GetModule(), d.GetSource()))
	}
	want := []string{
		"document# of core, core", "document#owner of core, core",
		"folder# of folder, authorizationmodel/folders", "folder#reader of folder, authorizationmodel/folders", "user# of core, core",
	}
	if !slices.Equal(all, want) {
		t.Errorf("the model comes from\n%s\nwant\n%s", strings.Join(all, "\n"), strings.Join(want, "\n"))
	}
}

func changeKinds(changes []*storev1.ModelChange) []string {
	var all []string
	for _, c := range changes {
		line := strings.TrimPrefix(c.GetKind().String(), "KIND_") + " " + c.GetDefinition().GetType()
		if r := c.GetDefinition().GetRelation(); r != "" {
			line += "#" + r
		}
		if c.GetKind() == storev1.ModelChange_KIND_CHANGED {
			for _, kind := range c.GetGained() {
				line += " +" + kind
			}
		}
		all = append(all, line)
	}
	return all
}
