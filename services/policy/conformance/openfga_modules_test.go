package conformance

import (
	"slices"
	"strings"
	"testing"

	"github.com/openfga/language/pkg/go/transformer"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/openfga"
)

func TestOpenFGAReadsModulesAndModFile(t *testing.T) {
	t.Parallel()
	for name, owner := range map[string]string{
		"nobody known": "", "dash": "foo-api", "underscore": "foo_api", "path": "foo/api", "core": "core", "spaces": "the foo team", "word": "define",
		"long": strings.Repeat("a", 60),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := valid(t, policy.Options{}, "# Provided by "+owner+"\n"+one("foo", "own", "get"), strings.Replace(one("a"+strings.Repeat("b", 60), "own", "put"), "idPrefix: foo", "idPrefix: bar", 1))
			modules, found := openfga.CompileModules(p, openfga.Options{})
			if found.HasErrors() {
				t.Fatal(found)
			}
			var want, got []string
			for _, m := range modules {
				if _, _, err := transformer.TransformModularDSLToProto(string(m.Content)); err != nil {
					t.Errorf("OpenFGA cannot read module %s: %v", m.Name, err)
				}
				want = append(want, m.File)
			}
			manifest, err := transformer.TransformModFile(string(openfga.ModFile(modules)))
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range manifest.Contents.Value {
				got = append(got, f.Value)
			}
			if !slices.Equal(got, want) || manifest.Schema.Value != "1.2" {
				t.Errorf("manifest %+v, want %q", manifest, want)
			}
		})
	}
}
