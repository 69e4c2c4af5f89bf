package validating

import (
	"encoding/json"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/entail-dev/entail/services/store-sync/model"
)

func TestWebhookRefusesInvalidTextWithLine(t *testing.T) {
	const good = "module a\n\ntype a\n  relations\n    define r: [user]\n"
	for name, c := range map[string]struct {
		text string
		// says is a part of the refusal; "" if the text passes.
		says string
	}{
		"it parses":                  {good, ""},
		"it extends another's type":  {"module a\nextend type other\n  relations\n    define s: [user]\n", ""},
		"a typo":                     {"module a\n\ntype a\n  relations\n    defin r: [user]\n", "line 5:5: syntax error"},
		"a whole model":              {"model\n  schema 1.1\ntype a\n", "not a module"},
		"nothing":                    {"# nothing\n", "the module is empty"},
		"more than any model may be": {good + strings.Repeat("type aaaaaaaaaaaaaaaa\n", 20<<10), "split it or shorten it"},
		"defined twice":              {"module a\ntype a\n  relations\n    define r: [user]\n    define r: [a]\n", "line 5"},
	} {
		t.Run(name, func(t *testing.T) {
			for i, field := range []string{"coreModule", "model"} {
				object, err := json.Marshal(map[string]any{"spec": map[string]string{field: c.text}})
				if err != nil {
					t.Fatal(err)
				}
				err = Webhooks(model.Limits{})[i].Validate(t.Context(), &admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: object}})
				if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "spec."+field)) {
					t.Errorf("of %s says %v, want %q", field, err, c.says)
				}
			}
		})
	}
}

func TestWebhookAcceptsEmptyModuleOfDocumentOnly(t *testing.T) {
	judge := Webhooks(model.Limits{})[1].Validate
	for _, c := range []struct {
		object  string
		accepts bool
	}{
		{`{"metadata":{"annotations":{"core.platform-mesh.io/policydocument":"team/unions"}},"spec":{"model":""}}`, true},
		{`{"metadata":{"annotations":{"core.platform-mesh.io/policydocument":"team/unions"}},"spec":{"model":"typ a"}}`, false},
		{`{"spec":{"model":""}}`, false},
	} {
		err := judge(t.Context(), &admissionv1.AdmissionRequest{Object: runtime.RawExtension{Raw: []byte(c.object)}})
		if (err == nil) != c.accepts {
			t.Errorf("%s: got %v, want accepted %t", c.object, err, c.accepts)
		}
	}
}

func TestWebhookRefusesNameOfNewStoreThatOpenFGADoesNotAllow(t *testing.T) {
	judge := Webhooks(model.Limits{})[0].Validate
	for name, accepts := range map[string]bool{"ff": false, "fff": true, strings.Repeat("f", 64): true, strings.Repeat("f", 65): false} {
		object, err := json.Marshal(map[string]any{"metadata": map[string]string{"name": name}, "spec": map[string]string{"coreModule": "module a\ntype a\n"}})
		if err != nil {
			t.Fatal(err)
		}
		request := &admissionv1.AdmissionRequest{Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: object}}
		if err := judge(t.Context(), request); accepts != (err == nil) || err != nil && !strings.Contains(err.Error(), "metadata.name: Invalid value: \""+name+"\" is not a name for an OpenFGA store: use 3 to 64") {
			t.Errorf("creating %q: got %v, want accepted %t", name, err, accepts)
		}
		request.Operation = admissionv1.Update // A Store of an earlier release must stay editable.
		if err := judge(t.Context(), request); err != nil {
			t.Errorf("editing %q: %v", name, err)
		}
	}
}
