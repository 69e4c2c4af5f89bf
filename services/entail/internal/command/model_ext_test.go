package command_test

import (
	"context"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	policyv1 "github.com/entail-dev/entail/gen/entail/policy/v1"
	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
)

// fakeStoreService is a StoreService with prepared answers that keeps the last request.
type fakeStoreService struct {
	storev1connect.UnimplementedStoreServiceHandler
	preview   *storev1.PreviewModelResponse
	previewed *storev1.PreviewModelRequest
	compared  *storev1.DiffModelRequest
}

func (m *fakeStoreService) GetModel(_ context.Context, r *storev1.GetModelRequest) (*storev1.GetModelResponse, error) {
	return &storev1.GetModelResponse{Dsl: "type " + r.GetName(), Definitions: []*storev1.Definition{{Type: r.GetName(), Source: "core"}}}, nil
}

func (m *fakeStoreService) PreviewModel(_ context.Context, r *storev1.PreviewModelRequest) (*storev1.PreviewModelResponse, error) {
	m.previewed = r
	return m.preview, nil
}

func (m *fakeStoreService) DiffModel(_ context.Context, r *storev1.DiffModelRequest) (*storev1.DiffModelResponse, error) {
	m.compared = r
	return &storev1.DiffModelResponse{}, nil
}

func (m *fakeStoreService) ask(t *testing.T, args ...string) commandResult {
	t.Helper()
	_, handler := storev1connect.NewStoreServiceHandler(m)
	server := httptest.NewServer(handler)
	defer server.Close()
	return run(t, map[string]string{"ENTAIL_STORE_SERVER": server.URL}, append([]string{"model"}, args...)...)
}

func TestModelShowAndDiffRequireStore(t *testing.T) {
	var m fakeStoreService
	if got := m.ask(t, "show", "demo"); got.out != "type demo\n" {
		t.Errorf("show: %+v", got)
	}
	if got := m.ask(t, "show", "demo", "--provenance"); !strings.Contains(got.out, "core") {
		t.Errorf("show --provenance: %+v", got)
	}
	if got := m.ask(t, "diff", "demo", "--from", "a"); got.out != "The models mean the same.\n" || m.compared.GetFromModelId() != "a" || m.compared.GetName() != "demo" {
		t.Errorf("diff: %+v, asked %v", got, m.compared)
	}
}

func TestModelPreviewFailsForRejectedModule(t *testing.T) {
	file := written(t, "module x\n")
	m := fakeStoreService{preview: &storev1.PreviewModelResponse{Accepted: true}}
	if got := m.ask(t, "preview", "demo", "-f", file, "--replaces", "y"); got.code != 0 || m.previewed.GetModule() != "module x\n" || m.previewed.GetReplaces() != "y" {
		t.Errorf("got %+v, asked %v", got, m.previewed)
	}
	m.preview = &storev1.PreviewModelResponse{Message: "line 1:1: no"}
	if got := m.ask(t, "preview", "demo", "-f", file); got.code != 1 || !strings.Contains(got.out, "line 1:1: no") {
		t.Errorf("got %+v", got)
	}
	for name, file := range map[string]string{"no file": "/nowhere", "nothing": written(t, ""), "too much": written(t, strings.Repeat("#", 256<<10+1))} {
		if got := m.ask(t, "preview", "demo", "-f", file); got.code != 2 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestModelPreviewAcceptsPolicies(t *testing.T) {
	m := fakeStoreService{preview: &storev1.PreviewModelResponse{Message: "errors in the documents: 1", Findings: &policyv1.Findings{
		Diagnostics: []*policyv1.Diagnostic{{
			Place: &policyv1.Place{File: "policydocument/team/lb", Path: "spec.actions[0].name"}, Code: "E-DUP-ACTION", Message: "twice", Hint: "keep one",
		}}, Total: 2, Truncated: true,
	}}}
	const document = "actions: []\n"
	file, dir := written(t, document), t.TempDir()
	manifest := filepath.Join(t.TempDir(), "a.json")
	if err := os.WriteFile(manifest, []byte(`{"apiVersion": "iapl.infratographer.com/v1alpha1"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if m.ask(t, "preview", "demo", "-f", manifest); len(m.previewed.GetDocuments().GetFiles()) != 1 {
		t.Errorf("asked %v", m.previewed)
	}
	for name, content := range map[string]string{"a.yaml": document, "b.yml": "unions: []\n", "a_test.yaml": "allow: []\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		path  string
		files int
	}{{file, 1}, {dir, 2}} {
		got := m.ask(t, "preview", "demo", "-f", test.path, "--replaces", "team/lb")
		const want = "Rejected: errors in the documents: 1\npolicydocument/team/lb: spec.actions[0].name: E-DUP-ACTION twice\n" +
			"    hint: keep one\nE-LIMIT there are 2 findings, of which 1 are listed\n    hint: correct those that are listed, then check again\n"
		if files := m.previewed.GetDocuments().GetFiles(); got.code != 1 || got.out != want || len(files) != test.files || string(files[0].GetContent()) != document {
			t.Errorf("got %+v, asked %v", got, m.previewed)
		}
		if m.previewed.GetModule() != "" || m.previewed.GetReplaces() != "team/lb" {
			t.Errorf("asked %v", m.previewed)
		}
	}
}
