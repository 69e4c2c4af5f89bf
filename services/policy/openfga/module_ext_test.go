package openfga_test

import (
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/policy"
	"github.com/entail-dev/entail/services/policy/check"
	"github.com/entail-dev/entail/services/policy/openfga"
	"github.com/entail-dev/entail/services/policy/syntax"
)

func modulesOf(t *testing.T, o policy.Options, text string) []openfga.Module {
	t.Helper()
	p, found := check.Files([]syntax.File{{Name: "p.yaml", Content: []byte(text)}}, syntax.ParseLimits{}, o)
	if p == nil {
		t.Fatal(found)
	}
	modules, found := openfga.CompileModules(p, openfga.Options{})
	if modules == nil {
		t.Fatal(found)
	}
	return modules
}

func TestCompileModulesNamesModulesByOwner(t *testing.T) {
	t.Parallel()
	const foo = "resourceTypes: [{name: foo, idPrefix: foo}, {name: bar, idPrefix: bar}]\n"
	const get = "actions: [{name: get}, {name: put}]\n"
	const bind = "actionBindings: [{actionName: put, typeName: foo, conditions: [{roleBinding: {}}]}, {actionName: get, typeName: foo, conditions: [{roleBinding: {}}]}]\n"
	for name, test := range map[string]struct {
		text    string
		options policy.Options
		want    string
	}{
		"one document, not known whose":    {text: foo + get + bind, want: "bar core"},
		"a document with a comment":        {text: "# Provided by foo-api\n" + foo + get + bind, want: "core foo-api"},
		"a comment before the mark":        {text: "# provided by foo_api\n---\n" + foo + get + bind, want: "core foo_api"},
		"a provider that is a path":        {text: "# provided by foo/api\n---\n" + foo + get + bind, want: "bar core"},
		"bindings in another document":     {text: foo + "---\n" + get + bind, want: "bar core foo-get"},
		"actions in another document":      {text: "# Provided by a\n" + foo + "---\n# Provided by b\n" + get + "---\n# Provided by c\n" + bind, want: "a c core"},
		"two documents of one provider":    {text: "# Provided by a\n" + foo + "---\n# Provided by a\n" + get + bind, want: "a core"},
		"a provider named core":            {text: "# Provided by core\n" + foo + get + bind, want: "core"},
		"a provider that cannot be one":    {text: "# Provided by the foo team\n" + foo + get + bind, want: "bar core"},
		"a provider named as a word":       {text: "# Provided by define\n" + foo + get + bind, want: "bar core"},
		"roles defined elsewhere":          {text: foo + get + bind, options: policy.Options{Partial: true}, want: "bar"},
		"a type with a name that is long":  {text: strings.ReplaceAll(foo+get+bind, "foo,", "a"+strings.Repeat("b", 60)+","), want: ""},
		"documents whose order is another": {text: get + bind + "---\n" + foo, want: "bar core foo-get"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if test.want == "" {
				test.text = strings.ReplaceAll(test.text, "typeName: foo", "typeName: a"+strings.Repeat("b", 60))
				test.text = strings.ReplaceAll(test.text, "name: bar", "name: zoo")
				test.want = "a" + strings.Repeat("b", 40) + "-"
			}
			var names []string
			for _, m := range modulesOf(t, test.options, test.text) {
				names = append(names, m.Name)
				if m.File != m.Name+".fga" || len(m.Name) > 50 {
					t.Errorf("module %s is in %s", m.Name, m.File)
				}
			}
			if got := strings.Join(names, " "); got != test.want && !strings.HasPrefix(got, test.want) {
				t.Errorf("modules %s, want %s", got, test.want)
			}
		})
	}
}

func TestModFileListsModules(t *testing.T) {
	t.Parallel()
	modules := modulesOf(t, policy.Options{}, "# Provided by b\nresourceTypes: [{name: foo, idPrefix: foo}]\nactions: [{name: get}]\n---\n# Provided by a-b\n"+
		"actionBindings: [{actionName: get, typeName: foo, conditions: [{roleBinding: {}}]}]\n")
	const want = "schema: '1.2'\ncontents:\n  - a-b.fga\n  - b.fga\n  - core.fga\n"
	if got := string(openfga.ModFile(modules)); got != want {
		t.Errorf("manifest %s, want %s", got, want)
	}
	if len(modules[0].Sources) != 1 || modules[0].Sources[0].Document != 2 || len(modules[2].Sources) != 0 {
		t.Errorf("sources %+v", modules)
	}
}

func TestCompileModulesOmitsExternalTypes(t *testing.T) {
	t.Parallel()
	p, found := check.Files([]syntax.File{{Name: "p.yaml", Content: []byte("resourceTypes: [{name: foo, idPrefix: foo}]\nactions: [{name: get}]\n" +
		"actionBindings: [{actionName: get, typeName: foo, conditions: [{roleBinding: {}}]}]\n")}}, syntax.ParseLimits{}, policy.Options{})
	if p == nil {
		t.Fatal(found)
	}
	for external, want := range map[string]string{
		"":     "module core\n\ntype role\n  relations\n    define subject: [user]\n\ntype user\n",
		"user": "module core\n\ntype role\n  relations\n    define subject: [user]\n",
		"foo":  "module core\n\ntype role\n  relations\n    define subject: [user]\n\ntype user\n",
	} {
		modules, _ := openfga.CompileModules(p, openfga.Options{ExternalTypes: []string{external}})
		if len(modules) != 2 || string(modules[0].Content) != want {
			t.Errorf("external %q: %q, want %q", external, modules[0].Content, want)
		}
		if len(modules) == 2 && !strings.Contains(string(modules[1].Content), "type foo") {
			t.Errorf("external %q: the second module is %s", external, modules[1].Content)
		}
	}
}
