package conformance

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"sigs.k8s.io/yaml"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/format"
	"github.com/entail-dev/entail/services/policy/syntax"
)

// resource validates manifests by the definition of the custom resource, as the API server does.
type resource struct {
	structural *schema.Structural
	validator  validation.SchemaValidator
}

func policyDocuments(t *testing.T) resource {
	t.Helper()
	text, err := os.ReadFile("../../../deploy/crd/iapl.infratographer.com_policydocuments.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &definition); err != nil {
		t.Fatal(err)
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(definition.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil); err != nil {
		t.Fatal(err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		t.Fatal(err)
	}
	validator, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		t.Fatal(err)
	}
	return resource{structural, validator}
}

// judge returns the error that a user of kubectl would get.
func (r resource) judge(text string) error {
	object := map[string]any{}
	if err := yaml.UnmarshalStrict([]byte(text), &object); err != nil {
		return fmt.Errorf("decode: %w", err)
	}
	unknown := pruning.PruneWithOptions(object, r.structural, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	if len(unknown) > 0 {
		return fmt.Errorf("unknown fields %q", unknown)
	}
	defaulting.PruneNonNullableNullsWithoutDefaults(object, r.structural)
	return validation.ValidateCustomResource(nil, object, r.validator).ToAggregate()
}

const manifest = `apiVersion: iapl.infratographer.com/v1alpha1
kind: PolicyDocument
metadata:
  name: foo-api
spec:
  storeRef:
    name: demo
  resourceTypes:
    - name: foo
      idPrefix: abcd
      relationships:
        - relation: own
          targetTypes:
            - name: foo
    - name: bar
      idPrefix: bar
  unions:
    - name: both
      resourceTypes:
        - name: foo
        - name: bar
  actions:
    - name: get
  actionBindings:
    - actionName: get
      typeName: both
      conditions:
        - roleBinding: {}
    - actionName: put
      typeName: foo
      conditions:
        - relationshipAction:
            relation: own
            actionName: get
    - actionName: list
      typeName: foo
      conditions:
        - roleBinding: {}
---
actions: [{name: put}, {name: list}]
`

// manifests holds pairs: the text to replace in the manifest, and its replacement.
func manifests() map[string][2]string {
	of := map[string][2]string{
		"as it is":                     {"foo-api", "foo-api"},
		"an unknown key of a list":     {"actions:", "acts:"},
		"a reference that is a name":   {"            - name: foo\n", "            - foo\n"},
		"a member that is a name":      {"        - name: bar\n", "        - bar\n"},
		"targets in brackets":          {"targetTypes:\n            - name: foo", "targetTypes: [{name: foo}]"},
		"targets that are names":       {"targetTypes:\n            - name: foo", "targetTypes: [foo]"},
		"members by another key":       {"resourceTypes:\n        - name: foo\n", "resourceTypeNames:\n        - name: foo\n"},
		"a role binding of something":  {"roleBinding: {}", "roleBinding: {a: b}"},
		"no store":                     {"  storeRef:\n    name: demo\n", ""},
		"a store without name":         {"    name: demo\n", "    cluster: demo\n"},
		"a store with another key":     {"    name: demo\n", "    name: demo\n    names: demo\n"},
		"a store of a cluster":         {"    name: demo\n", "    name: demo\n    cluster: east\n"},
		"a store with a long name":     {"    name: demo\n", "    name: " + strings.Repeat("a", 254) + "\n"},
		"a key beside spec":            {"spec:", "extra: {}\nspec:"},
		"a status":                     {"spec:", "status: {}\nspec:"},
		"spec in another case":         {"spec:", "Spec:"},
		"a list of nothing":            {"  actions:\n    - name: get\n", "  actions:\n"},
		"a list twice":                 {"  unions:", "  unions: []\n  unions:"},
		"a long text":                  {"idPrefix: abcd", "idPrefix: " + strings.Repeat("a", 257)},
		"as long a text as there is":   {"idPrefix: abcd", "idPrefix: " + strings.Repeat("a", 256)},
		"an action without a relation": {"            relation: own\n", ""},
		"a condition of nothing":       {"        - roleBinding: {}\n    - actionName: put", "        - {}\n    - actionName: put"},
		"a type without a name":        {"    - name: bar\n      idPrefix", "    - idPrefix"},
	}
	for _, key := range []string{
		"storeRef", "resourceTypes", "idPrefix", "relationships", "targetTypes", "unions", "actions", "actionBindings", "typeName", "conditions",
		"roleBinding", "relationshipAction", "actionName", "relation",
	} {
		of["another case of "+key] = [2]string{key + ":", strings.ToLower(key[:1]) + strings.ToUpper(key[1:]) + ":"}
		of["a small "+key] = [2]string{key + ":", strings.ToLower(key) + ":"}
	}
	for _, text := range []string{
		"123", "1e3", "0x1f", "0b11", "0o17", "017", "1_000", "12e", "1a2", "true", "yes", "on", "off", "no", "nan", "inf", "2001-01-01", "'123'", `"yes"`,
		"1x", "00", "0x", "123abc", "e10", "1.5e3",
	} {
		of["the text "+text] = [2]string{"idPrefix: abcd", "idPrefix: " + text}
	}
	for _, list := range []struct {
		before, item string
		most         int
	}{
		{"  actions:\n", "    - name: %s\n", 1000},
		{"      relationships:\n", "        - relation: %s\n          targetTypes:\n            - name: foo\n", 200},
	} {
		for _, more := range []int{-1, 0} {
			var items strings.Builder
			for i := range list.most + more {
				fmt.Fprintf(&items, list.item, "item_"+string([]rune{'a' + rune(i/676), 'a' + rune(i/26%26), 'a' + rune(i%26)}))
			}
			of[fmt.Sprintf("%d%+d items of %s", list.most, more+1, strings.TrimSpace(list.before))] = [2]string{list.before, list.before + items.String()}
		}
	}
	return of
}

// TestManifestChecksEqualAPIServer compares with the definition of the custom resource, and requires that it
// accepts the output of fmt.
func TestManifestChecksEqualAPIServer(t *testing.T) {
	t.Parallel()
	crd := policyDocuments(t)
	for name, m := range manifests() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := strings.Replace(manifest, m[0], m[1], 1)
			object, _, _ := strings.Cut(text, "---\n")
			refused := crd.judge(object)
			_, found := check.Files([]syntax.File{{Content: []byte(text)}}, syntax.ParseLimits{}, policy.Options{})
			if (refused != nil) != formal(found) {
				t.Fatalf("the API server says %v, we say %v", refused, found)
			}
			formatted, wrong := format.Source(syntax.File{Content: []byte(text)})
			_, still := check.Files([]syntax.File{{Content: formatted}}, syntax.ParseLimits{}, policy.Options{})
			if mended := !slices.ContainsFunc(found, func(d policy.Diagnostic) bool { return d.Code != policy.CodeManifest }); mended && formal(still) {
				t.Errorf("it is formatted, and still %v", still)
			}
			if object, _, _ := strings.Cut(string(formatted), "---\n"); !wrong.HasErrors() && (crd.judge(object) != nil) != formal(still) {
				t.Errorf("of what fmt writes the API server says %v, we say %v:\n%s", crd.judge(object), still, formatted)
			}
		})
	}
}

// formal reports whether a finding is about the form. The API server does not check the meaning of a policy.
func formal(found policy.Diagnostics) bool {
	for _, d := range found {
		switch d.Code {
		case policy.CodeIDPrefix, policy.CodeCondition, policy.CodeUnknownAction, policy.CodeActionNotOnTarget:
		default:
			if d.Severity == policy.Error {
				return true
			}
		}
	}
	return false
}
