package syntax_test

import (
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy/syntax"
)

func TestAManifestHoldsADocument(t *testing.T) {
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
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			documents, found := syntax.Parse([]syntax.File{{Name: "p.yaml", Content: []byte(test.text)}}, syntax.Limits{})
			if test.want != "" {
				if len(found) != 1 || !strings.HasPrefix(found[0].String(), test.want) || documents[0].Valid() {
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
