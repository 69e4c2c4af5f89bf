package discovery_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kube"
	"github.com/entail-dev/entail/services/store-sync/apimodule/discovery"
	"github.com/entail-dev/entail/services/store-sync/apimodule/plan"
)

// fakeDiscovery serves resources by group-version, and holds the definitions.
type fakeDiscovery struct {
	served  map[string][]metav1.APIResource
	errs    map[string]error
	asked   int
	defined map[string][]plan.APIResource
	gone    map[plan.APIResource]bool
}

func (s *fakeDiscovery) DiscoverResources(_ context.Context, groupVersion string) ([]metav1.APIResource, error) {
	s.asked++
	if err := s.errs[groupVersion]; err != nil {
		return nil, err
	}
	if resources, ok := s.served[groupVersion]; ok {
		return resources, nil
	}
	return nil, fmt.Errorf("discovering: %w", kube.ErrNotServed)
}

func (s *fakeDiscovery) ServedResources(gv schema.GroupVersion) []plan.APIResource {
	return s.defined[gv.String()]
}

func (s *fakeDiscovery) IsDefinitionDeleted(r plan.APIResource) bool { return s.gone[r] }

func cluster() *fakeDiscovery {
	return &fakeDiscovery{
		served: map[string][]metav1.APIResource{
			"v1": {
				{Name: "namespaces", SingularName: "namespace", Kind: "Namespace"},
				{Name: "namespaces/status", SingularName: "", Kind: "Namespace"},
				{Name: "pods", Kind: "Pod", Namespaced: true},
			},
			"rbac.authorization.k8s.io/v1": {{Name: "roles", SingularName: "role", Kind: "Role", Namespaced: true}},
		},
		errs: map[string]error{}, gone: map[plan.APIResource]bool{},
	}
}

func names(d *discovery.Discovery) string {
	modules, _ := d.DiscoveredModules()
	all := make([]string, len(modules))
	for i, m := range modules {
		all[i] = m.Origin.String()
	}
	return strings.Join(all, " ")
}

func TestEveryServedResourceHasModule(t *testing.T) {
	t.Parallel()
	s := cluster()
	d := discovery.New(discovery.Defaults(), s, s)
	if _, known := d.DiscoveredModules(); known {
		t.Error("it is known before anybody asked")
	}
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	modules, known := d.DiscoveredModules()
	if got := names(d); !known || got != "discovered/namespaces discovered/pods discovered/rbac.authorization.k8s.io/roles" {
		t.Errorf("known %t, modules %s", known, got)
	}
	for i, want := range [][]string{
		{"module internal_core_types_namespaces\n", "extend type core_platform-mesh_io_account\n", "type core_namespace\n", "update: member"},
		{"extend type core_namespace\n", "type core_pod\n"},
		{"module internal_core_types_roles\n", "type rbac_authorization_k8s_io_role\n", "update: owner", "bind: owner"},
	} {
		for _, part := range want {
			if !strings.Contains(modules[i].DSL, part) {
				t.Errorf("%s lacks %q:\n%s", modules[i].Origin, part, modules[i].DSL)
			}
		}
	}
}

func TestRefreshCallsAPIServerAfterInvalidateOnly(t *testing.T) {
	t.Parallel()
	s := cluster()
	d := discovery.New(discovery.Defaults(), s, s)
	for range 3 {
		if err := d.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if s.asked != 6 {
		t.Errorf("6 group-versions were asked for %d times", s.asked)
	}
	s.served["ui.platform-mesh.io/v1alpha1"] = []metav1.APIResource{{Name: "pages", SingularName: "page"}}
	d.Invalidate()
	if err := d.Refresh(t.Context()); err != nil || s.asked != 12 || !strings.Contains(names(d), "discovered/ui.platform-mesh.io/pages") {
		t.Errorf("asked %d times, %s, %v", s.asked, names(d), err)
	}
}

func TestRefreshKeepsUnansweredGroupsAndRetries(t *testing.T) {
	t.Parallel()
	s := cluster()
	d := discovery.New(discovery.Defaults(), s, s)
	down := fault.Unavailable(errors.New("down"))
	s.errs["v1"] = down
	if err := d.Refresh(t.Context()); !fault.IsUnavailable(err) {
		t.Errorf("refreshed with %v", err)
	}
	if _, known := d.DiscoveredModules(); known {
		t.Error("all is known although v1 never answered")
	}
	delete(s.errs, "v1")
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := names(d)
	s.errs["v1"] = down
	d.Invalidate()
	if err := d.Refresh(t.Context()); err == nil {
		t.Error("refreshed although v1 does not answer")
	}
	if _, known := d.DiscoveredModules(); !known || names(d) != before {
		t.Errorf("known %t, modules %s", known, names(d))
	}
}

func TestRefreshWaitsForDefinedAndDropsDeletedResources(t *testing.T) {
	t.Parallel()
	s := cluster()
	d := discovery.New(discovery.Defaults(), s, s)
	page := plan.APIResource{Group: "ui.platform-mesh.io", Plural: "pages", Singular: "page"}
	s.defined = map[string][]plan.APIResource{"ui.platform-mesh.io/v1alpha1": {page}}
	if err := d.Refresh(t.Context()); !fault.IsUnavailable(err) || !strings.Contains(err.Error(), "pages.ui.platform-mesh.io") {
		t.Errorf("behind the definition: %v", err)
	}
	s.served["ui.platform-mesh.io/v1alpha1"] = []metav1.APIResource{{Name: "pages", SingularName: "page"}}
	if err := d.Refresh(t.Context()); err != nil || !strings.Contains(names(d), "pages") {
		t.Errorf("modules %s, %v", names(d), err)
	}
	s.defined, s.gone = nil, map[plan.APIResource]bool{page: true}
	d.Invalidate()
	if err := d.Refresh(t.Context()); err != nil || strings.Contains(names(d), "pages") {
		t.Errorf("the definition is gone: modules %s, %v", names(d), err)
	}
}

func TestModulesMergeVersionsAndReportBadNames(t *testing.T) {
	t.Parallel()
	s := cluster()
	s.served["a.example.com/v1"] = []metav1.APIResource{{Name: "things", SingularName: "thing"}, {Name: strings.Repeat("x", 50), SingularName: "x"}}
	s.served["a.example.com/v2"] = []metav1.APIResource{{Name: "things", SingularName: "thing"}}
	d := discovery.New(discovery.Config{Ordinary: []string{"a.example.com/v1", "a.example.com/v2"}}, s, s)
	if err := d.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	modules, _ := d.DiscoveredModules()
	if len(modules) != 2 || modules[0].Origin.Name != "things" || modules[0].Fault != "" || !strings.Contains(modules[1].Fault, "shorter plural") {
		t.Errorf("modules are %+v", modules)
	}
}

func TestIsConfiguredGroup(t *testing.T) {
	t.Parallel()
	d := discovery.New(discovery.Defaults(), nil, nil)
	for group, want := range map[string]bool{"ui.platform-mesh.io": true, "apis.kcp.io": true, "example.com": false, "mesh.io": false, "v1": false} {
		if got := d.IsConfiguredGroup(group); got != want {
			t.Errorf("%s concerns: %t", group, got)
		}
	}
}

func TestConfigBindsFlagsAndValidates(t *testing.T) {
	t.Parallel()
	cfg := discovery.Defaults()
	fs := pflag.NewFlagSet("test", pflag.ContinueOnError)
	cfg.BindFlags(fs)
	if err := fs.Parse([]string{"--discover=v1,apps/v1", "--discover-privileged=", "--account-type=tenant"}); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(cfg.Ordinary, []string{"v1", "apps/v1"}) || len(cfg.Privileged) != 0 || cfg.AccountType != "tenant" || cfg.Validate() != nil {
		t.Errorf("set is %+v, %v", cfg, cfg.Validate())
	}
	refusals := map[string]discovery.Config{
		"a/b/c":             {Ordinary: []string{"a/b/c"}, AccountType: "t"},
		`"" is not a group`: {Privileged: []string{""}, AccountType: "t"},
		"named twice":       {Ordinary: []string{"apps/v1"}, Privileged: []string{"apps/v1"}, AccountType: "t"},
		"--account-type":    {AccountType: "a type"},
	}
	for want := range maps.Keys(refusals) {
		cfg := refusals[want]
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("refused with %v, want %s", err, want)
		}
	}
	defaults := discovery.Defaults()
	if err := defaults.Validate(); err != nil {
		t.Error(err)
	}
}
