//go:build integration

package opensearchsync_test

import (
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/opensearch-sync/internal/search"
	"github.com/entail-dev/entail/services/opensearch-sync/plan"
)

// raw returns a client for the OpenSearch of the bed, with the settings of the service.
func (b *testEnv) raw() *search.Client {
	b.T.Helper()
	certificate, key := b.search.AdminCertificate()
	c, err := search.New(search.ConnectionSettings{URL: b.search.URL(), CA: b.search.CA(), Certificate: certificate, Key: key, Local: true})
	if err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(c.Close)
	return c
}

func (b *testEnv) names(c *search.Client, kind plan.EntityKind) []string {
	b.T.Helper()
	all, err := c.List(b.T.Context(), kind, search.NewAllowance(true))
	if err != nil {
		b.T.Fatal(err)
	}
	return slices.Sorted(maps.Keys(all))
}

// acceptedBodies returns contents that OpenSearch accepts, by kind.
func acceptedBodies() map[plan.EntityKind]plan.Body {
	return map[plan.EntityKind]plan.Body{
		plan.Users: {"attributes": map[string]any{"k8s-uid": "u"}, "backend_roles": []any{"a"}}, plan.Tenants: {"description": "d"},
		plan.Roles:        {"cluster_permissions": []any{"cluster_monitor"}, "index_permissions": []any{}, "tenant_permissions": []any{}},
		plan.ActionGroups: {"allowed_actions": []any{"read"}, "type": "index"}, plan.Mappings: {"users": []any{"a"}},
	}
}

// oddNames returns names with every character that is special in paths, patches and listings.
func oddNames() []string {
	return []string{
		"a/b", "/", "a//b/", "%2F", "a%2Fb", "%7E1", "a+b", "a b", "a;b", "a,b", "a?b=c", "a#b", "a&b", "a=b", "id=1", "-", "0", "01", "*", "a*", "/.*/", ".", "..",
		`a\b`, `"`, "'", "{x}", "${x}", "[0]", "$", "@", "é", "e\u0301", "ﬀ", "😀", "a\u200bb", "_doc", "config_version", "type", "hash", "null", "true",
		"A", "a", strings.Repeat("😀", 256),
	}
}

// Each name is written and removed in every way that the client has. If OpenSearch took two names for the same one, the
// list would lack one.
func TestClientWritesExactNames(t *testing.T) {
	b := newTestEnv(t)
	c := b.raw()
	change := func(kind plan.EntityKind, body plan.Body) {
		t.Helper()
		var all []plan.Action
		for _, name := range oddNames() {
			all = append(all, plan.Action{Name: name, Body: body})
		}
		if err := c.PatchEntities(t.Context(), kind, all); err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
	}
	for _, kind := range []plan.EntityKind{plan.Users, plan.Tenants, plan.ActionGroups, plan.Roles, plan.Mappings} {
		if kind == plan.Mappings {
			change(plan.Roles, acceptedBodies()[plan.Roles])
		}
		before, body := b.names(c, kind), acceptedBodies()[kind]
		change(kind, body)
		want := with(before, oddNames()...)
		for _, name := range oddNames() {
			if kind == plan.Users {
				if err := c.PutUser(t.Context(), name, body, "cobalt_Ferret_91_orbit"); err != nil {
					t.Errorf("user %q: %v", name, err)
				}
			}
		}
		if now := b.names(c, kind); !slices.Equal(now, want) {
			t.Errorf("%s: got %q, want %q", kind, now, want)
		}
		change(kind, nil)
		if now := b.names(c, kind); !slices.Equal(now, before) {
			t.Errorf("%s, removed: got %q, want %q", kind, now, before)
		}
	}
	for kind, body := range acceptedBodies() { // OpenSearch has an entry _meta in each document.
		if err := c.PatchEntities(t.Context(), kind, []plan.Action{{Name: "_meta", Body: body}}); err == nil {
			t.Errorf("%s _meta is written", kind)
		}
	}
}

// with returns names and more, sorted.
func with(names []string, more ...string) []string {
	return slices.Sorted(slices.Values(slices.Concat(names, more)))
}

func TestNameWithTildeDoesNotAffectOtherEntities(t *testing.T) {
	b := newTestEnv(t)
	a := b.alice()
	for kind, fields := range map[kinds.Kind]map[string]any{
		kinds.OpenSearchUsers(): specWithOwnSecret(), kinds.OpenSearchRoles(): {"clusterPermissions": []any{"*"}},
		kinds.OpenSearchTenants(): {}, kinds.OpenSearchActionGroups(): {"allowedActions": []any{"read"}},
	} {
		fields["name"] = "team~1admin"
		a.refused(a.create(kind, "tilde", fields), "spec.name")
	}
	a.refused(a.create(kinds.OpenSearchBindings(), "tilde", map[string]any{"roles": []any{"team~1admin"}, "users": []any{"a"}}), "spec.roles[0]")

	c := b.raw()
	for kind, body := range acceptedBodies() {
		if kind == plan.Mappings { // The API server and the client both refuse such a name of a role.
			continue
		}
		content, name := maps.Clone(map[string]any(body)), string(kind)+"~1admin"
		if kind == plan.Users {
			content["password"] = first
		}
		for _, path := range []string{string(kind) + "%2Fadmin", name} { // In a path, OpenSearch reads each name as it is.
			b.write(string(kind)+"/"+path, content)
		}
		before := b.names(c, kind)
		for _, err := range []error{
			c.PatchEntities(t.Context(), kind, []plan.Action{{Name: name, Body: body}}), c.PatchEntities(t.Context(), kind, []plan.Action{{Name: name}, {Name: "other", Body: body}}),
			c.PutUser(t.Context(), name, body, second),
		} {
			if _, refused := errors.AsType[*search.RefusedError](err); !refused || !slices.Equal(b.names(c, kind), before) {
				t.Errorf("%s: got %v, want a refusal", kind, err)
			}
		}
		if err := c.PatchEntities(t.Context(), kind, []plan.Action{{Name: name}}); err != nil {
			t.Error(err)
		}
		if now := b.names(c, kind); !slices.Equal(with(now, name), before) {
			t.Errorf("%s: got %q, want all of %q but %s", kind, now, before, name)
		}
	}
	if status, _ := b.search.TryLogin(t, "internalusers/admin", first); status != http.StatusOK {
		t.Errorf("got %d, want the other user as it was", status)
	}
}
