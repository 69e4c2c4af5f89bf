package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// core is a core module to which any module of this package fits.
const core = `module core

type user

type role
  relations
    define assignee: [user, user:*]

type core_platform-mesh_io_account
  relations
    define parent: [core_platform-mesh_io_account]
    define owner: [role#assignee] or owner from parent
    define member: [role#assignee] or owner or member from parent

type core_namespace
  relations
    define parent: [core_platform-mesh_io_account]
    define owner: [role#assignee] or owner from parent
    define member: [role#assignee] or owner or member from parent
`

// merged returns the report on a module beside the core module.
func merged(dsl string) model.ModuleReport {
	m := model.Module{Origin: model.ModuleOrigin{Kind: model.Discovered, Name: "x"}, DSL: dsl}
	result, err := model.Merge(model.Module{DSL: core}, []model.Module{m}, model.Limits{})
	if err != nil {
		return model.ModuleReport{State: model.Rejected, Message: err.Error()}
	}
	return result.Reports[1]
}

func TestGroupTokenTruncatesFrontOfGroup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ group, plural, want string }{
		"the core group":            {"", "pods", "core"},
		"dots":                      {"orchestrate.platform-mesh.io", "httpbins", "orchestrate_platform-mesh_io"},
		"just short enough":         {"veryverylonggroup.platform-mesh.org", "plural", "veryverylonggroup_platform-mesh_org"},
		"two too many":              {"authorization.k8s.io", "selfsubjectaccessreviews", "thorization_k8s_io"},
		"three too many":            {"authorization.k8s.io", "localsubjectaccessreviews", "horization_k8s_io"},
		"of several words":          {"rbac.authorization.k8s.io", "clusterrolebindings", "ac_authorization_k8s_io"},
		"nine too many":             {"core.platform-mesh.io", "identityproviderconfigurations", "form-mesh_io"},
		"nothing left of the group": {"example.com", strings.Repeat("p", 42), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := plan.GroupToken(test.group, test.plural)
			if err != nil || got != test.want {
				t.Errorf("token %q, %v; want %q", got, err, test.want)
			}
		})
	}
	if got, err := plan.GroupToken("example.com", strings.Repeat("p", 43)); err == nil {
		t.Errorf("a plural of 43 characters has the token %q", got)
	}
}

func TestRenderModuleFollowsTemplate(t *testing.T) {
	t.Parallel()
	widgets := plan.APIResource{Group: "example.com", Plural: "widgets", Singular: "widget", Namespaced: true}
	roles := plan.APIResource{Group: "rbac.authorization.k8s.io", Plural: "clusterroles", Singular: "clusterrole"}
	for name, test := range map[string]struct {
		template plan.ModuleTemplate
		resource plan.APIResource
		has      []string
		hasNot   []string
	}{
		"ordinary in a namespace": {
			plan.ModuleTemplate{},
			widgets,
			[]string{
				"module widgets\n", "extend type core_namespace\n", "define create_example_com_widgets: owner\n",
				"define list_example_com_widgets: member\n", "define watch_example_com_widgets: member\n",
				"type example_com_widget\n", "define parent: [core_namespace]\n",
				"define member: [role#assignee] or owner or member from parent\n", "define owner: [role#assignee] or owner from parent\n",
				"define get: member\n", "define watch: member\n", "define update: member\n", "define delete: member\n", "define patch: member\n",
				"define manage_iam_roles: owner\n", "define get_iam_roles: member\n", "define get_iam_users: member\n",
			},
			[]string{"bind", "escalate"},
		},
		"discovered": {plan.ModuleTemplate{Discovered: true}, widgets, []string{"module internal_core_types_widgets\n", "define update: member\n"}, []string{"bind"}},
		"privileged of the cluster": {
			plan.ModuleTemplate{Privileged: true, Discovered: true},
			roles,
			[]string{
				"module internal_core_types_clusterroles\n", "extend type core_platform-mesh_io_account\n", "type rbac_authorization_k8s_io_clusterrole\n",
				"define get: member\n", "define update: owner\n", "define delete: owner\n", "define patch: owner\n", "define bind: owner\n", "define escalate: owner\n",
			},
			nil,
		},
		"another account type": {plan.ModuleTemplate{AccountType: "tenant"}, roles, []string{"extend type tenant\n", "define parent: [tenant]\n"}, []string{"account"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := test.template.RenderModule(test.resource)
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range test.has {
				if !strings.Contains(got, want) {
					t.Errorf("lacks %q:\n%s", want, got)
				}
			}
			for _, unwanted := range test.hasNot {
				if strings.Contains(got, unwanted) {
					t.Errorf("has %q:\n%s", unwanted, got)
				}
			}
		})
	}
}

func TestRenderModuleRefusesInvalidNames(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		resource plan.APIResource
		want     string
	}{
		"a group that begins with a digit":       {plan.APIResource{Group: "3scale.net", Plural: "things", Singular: "thing"}, `"3scale_net_thing"`},
		"a group that is cut before a hyphen":    {plan.APIResource{Group: "abc-group.example.org", Plural: strings.Repeat("p", 24), Singular: "p"}, `"-group_example_org_p"`},
		"a plural that is a word":                {plan.APIResource{Group: "example.com", Plural: "relations", Singular: "relation"}, `"relations"`},
		"a plural that is too long":              {plan.APIResource{Group: "example.com", Plural: strings.Repeat("p", 43), Singular: "p"}, "62 characters, of at most 50"},
		"a plural that no API server would take": {plan.APIResource{Group: "example.com", Plural: "a b", Singular: "a"}, `"a b"`},
		"no singular":                            {plan.APIResource{Group: "example.com", Plural: "things"}, "lacks"},
		"a type that is too long":                {plan.APIResource{Group: "example.com", Plural: "things", Singular: strings.Repeat("t", 250)}, "of at most 254"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dsl, err := plan.ModuleTemplate{}.RenderModule(test.resource)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("refused with %v, want %s; the module is\n%s", err, test.want, dsl)
			}
		})
	}
}

// anyName draws valid names, and names that an API server would refuse.
func anyName(t *rapid.T, label string) string {
	return rapid.OneOf(
		rapid.StringMatching(`[a-z]([-a-z0-9]{0,61}[a-z0-9])?`),
		rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,30}[a-z0-9])?`),
		rapid.StringMatching(`[a-z]{35,45}`),
		rapid.SampledFrom([]string{
			"", "and", "or", "but", "not", "from", "with", "model", "schema", "type", "relation", "relations", "module", "extend", "define", "condition",
			"self", "this", "true", "false", "null", "in", "role", "user", "namespace", "namespaces", "x\ny", "a#b", "ü",
		}),
		rapid.String(),
	).Draw(t, label)
}

func TestRenderModuleIsValidOrRefused(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := plan.APIResource{Group: anyName(t, "group"), Plural: anyName(t, "plural"), Singular: anyName(t, "singular"), Namespaced: rapid.Bool().Draw(t, "namespaced")}
		template := plan.ModuleTemplate{Privileged: rapid.Bool().Draw(t, "privileged"), Discovered: rapid.Bool().Draw(t, "discovered")}
		dsl, err := template.RenderModule(r)
		if err != nil {
			if err.Error() == "" {
				t.Fatal("refused without a reason")
			}
			return
		}
		got := merged(dsl)
		collides := strings.Contains(got.Message, "already defined by core")
		if got.State != model.Merged && !collides {
			t.Fatalf("%+v has a module that is %s: %s\n%s", r, got.State, got.Message, dsl)
		}
	})
}

func TestRenderModuleAcceptsWhatOpenFGAAccepts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		name := anyName(t, "name")
		err := plan.ValidateTypeName(name)
		result, mergeErr := model.Merge(model.Module{DSL: fmt.Sprintf("module m\ntype %s\n", name)}, nil, model.Limits{})
		if strings.ContainsAny(name, "./") {
			return // Some of these would be valid, but no resource has them.
		}
		takes := mergeErr == nil && result.Model.GetTypeDefinitions()[0].GetType() == name
		if (err == nil) != takes {
			t.Fatalf("type %q: %v, but OpenFGA says %v", name, err, mergeErr)
		}
	})
}

func ExampleModuleTemplate_RenderModule() {
	dsl, err := plan.ModuleTemplate{}.RenderModule(plan.APIResource{Group: "example.com", Plural: "widgets", Singular: "widget", Namespaced: true})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Println(strings.Join(strings.Split(dsl, "\n")[:7], "\n"))
	// Output:
	// module widgets
	//
	// extend type core_namespace
	//   relations
	//     define create_example_com_widgets: owner
	//     define list_example_com_widgets: member
	//     define watch_example_com_widgets: member
}

func TestCandidateNamesTruncateModuleName(t *testing.T) {
	r := plan.APIResource{Group: "admissionregistration.k8s.io", Plural: "validatingadmissionpolicybindings", Singular: "validatingadmissionpolicybinding"}
	dsl, err := plan.ModuleTemplate{Discovered: true}.RenderModule(r)
	if err != nil || !strings.HasPrefix(dsl, "module internal_core_types_validatingadmissionpolicybindi\n") {
		t.Errorf("got %q: %v", dsl, err)
	}
}
