package format_test

import (
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy/format"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func TestToManifests(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: iapl.infratographer.com/v1alpha1\nkind: PolicyDocument\nmetadata:\n  name: "
	for name, test := range map[string]struct {
		text   string
		object format.ManifestTarget
		// want is the output, or a part of the error.
		want, refused string
	}{
		"a document": {
			"# Provided by Foo_API\n# All.\nactions: # these\n- name: on # one\n",
			format.ManifestTarget{Store: "demo", Namespace: "team"},
			"# Provided by Foo_API\n# All.\n" + head + "foo-api\n  namespace: team\nspec:\n  storeRef:\n    name: demo\n" +
				"  actions: # these\n    - name: \"on\" # one\n", "",
		},
		"two documents": {
			"# Provided by foo\nactions: []\n---\n# Provided by bar\nunions: [{name: u, resourceTypeNames: baz}]\n",
			format.ManifestTarget{Store: "demo"},
			"# Provided by foo\n" + head + "foo\nspec:\n  storeRef:\n    name: demo\n  actions: []\n---\n# Provided by bar\n" + head +
				"bar\nspec:\n  storeRef:\n    name: demo\n  unions:\n    - name: u\n      resourceTypes:\n        - name: baz\n", "",
		},
		"a name that is given": {
			"actions: []\n", format.ManifestTarget{Store: "demo", Name: "foo"}, head + "foo\nspec:\n  storeRef:\n    name: demo\n  actions: []\n", "",
		},
		"a manifest in another form": {
			head + "foo\nspec:\n  unions: [{name: u, resourceTypeNames: foo}]\n  storeRef: {name: demo}\n",
			format.ManifestTarget{Store: "other"},
			head + "foo\nspec:\n  storeRef:\n    name: demo\n  unions:\n    - name: u\n      resourceTypes:\n        - name: foo\n", "",
		},
		"no name":               {"actions: []\n", format.ManifestTarget{Store: "demo"}, "", "has no name"},
		"one name for two":      {"actions: []\n---\nunions: []\n", format.ManifestTarget{Store: "demo", Name: "foo"}, "", "two documents"},
		"no name of Kubernetes": {"# Provided by föö\nactions: []\n", format.ManifestTarget{Store: "demo"}, "", "cannot name an object"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, found := format.ToManifests(syntax.File{Name: "p.yaml", Content: []byte(test.text)}, test.object)
			if test.refused != "" {
				if len(found) != 1 || !strings.Contains(found[0].Message, test.refused) || out != nil {
					t.Errorf("found %v, want %s", found, test.refused)
				}
				return
			}
			if string(out) != test.want || len(found) > 0 {
				t.Errorf("got\n%s\nwant\n%s\n%v", out, test.want, found)
			}
		})
	}
}
