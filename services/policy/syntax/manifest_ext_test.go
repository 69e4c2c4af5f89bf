package syntax_test

import (
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy/syntax"
)

func TestManifestHoldsDocument(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: iapl.infratographer.com/v1alpha1\nkind: PolicyDocument\nmetadata: {name: lb-api, namespace: team}\n"
	const manifest = head + `spec:
  storeRef: {name: demo}
  resourceTypes: [{name: foo, idPrefix: foo}]
  actions: [{name: get}]
`
	for name, test := range map[string]struct {
		text, owner, want string
	}{
		"whole":              {text: manifest, owner: "team_lb-api"},
		"without namespace":  {text: strings.Replace(manifest, ", namespace: team", "", 1), owner: "default_lb-api"},
		"whoever provides":   {text: "# Provided by others\n" + manifest, owner: "team_lb-api"},
		"another kind":       {text: strings.Replace(manifest, "PolicyDocument", "Store", 1), want: `p.yaml:2:7: E-KIND an object of the kind "Store" in "iapl`},
		"another version":    {text: strings.Replace(manifest, "v1alpha1", "v1", 1), want: `p.yaml:2:7: E-KIND an object of the kind "PolicyDocument" in "iapl.infratographer.com/v1" is no policy`},
		"an unknown key":     {text: strings.Replace(manifest, "  actions", "  acts", 1), want: `p.yaml:7:3: E-UNKNOWN-KEY a document has no key "acts"`},
		"a spec that is bad": {text: head + "spec: [1]\n", want: "p.yaml:4:7: E-KIND a document is a list, not a mapping"},
		"another case":       {text: strings.Replace(manifest, "actions:", "Actions:", 1), want: `p.yaml:7:3: E-MANIFEST the custom resource does not accept this document: it has the key "Actions"`},
		"members by another key": {
			text: manifest + "  unions: [{name: u, resourceTypeNames: [{name: foo}]}]\n", want: `p.yaml:8:41: E-MANIFEST the custom resource does not accept this document: it has the key resourceTypeNames`,
		},
		"just a name": {
			text: manifest + "  unions: [{name: u, resourceTypes: [foo]}]\n", want: `p.yaml:8:38: E-MANIFEST the custom resource does not accept this document: it has a type that is just its name`,
		},
		"a number":   {text: strings.Replace(manifest, "idPrefix: foo", "idPrefix: 123", 1), want: `p.yaml:6:41: E-MANIFEST the custom resource does not accept this document: YAML has "123"`},
		"no store":   {text: strings.Replace(manifest, "  storeRef: {name: demo}\n", "", 1), want: "p.yaml:5:3: E-MISSING the manifest names no store"},
		"no name":    {text: strings.Replace(manifest, "name: lb-api, ", "", 1), want: "p.yaml:2:7: E-MISSING the manifest has no name"},
		"no spec":    {text: head, want: "p.yaml:2:7: E-MISSING the manifest has no spec"},
		"a top key":  {text: manifest + "data: {}\n", want: `p.yaml:8:1: E-UNKNOWN-KEY a manifest has no key "data"`},
		"store keys": {text: strings.Replace(manifest, "{name: demo}", "{name: demo, name: other}", 1), want: "p.yaml:5:26: E-DUP-KEY storeRef has the key name twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			documents, found := syntax.ParseFiles([]syntax.File{{Name: "p.yaml", Content: []byte(test.text)}}, syntax.ParseLimits{})
			if test.want != "" {
				if len(found) != 1 || !strings.HasPrefix(found[0].String(), test.want) || documents[0].IsValid() {
					t.Errorf("found %v, want %s", found, test.want)
				}
				return
			}
			if len(found) > 0 || len(documents) != 1 || documents[0].Source.Owner != test.owner ||
				len(documents[0].ResourceTypes) != 1 || len(documents[0].Actions) != 1 {
				t.Errorf("found %v, read %+v", found, documents)
			}
		})
	}
}
