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

// raw returns a client for the OpenSearch of the bed, as opensearch-sync has it.
func (b *bed) raw() *search.Client {
	b.T.Helper()
	certificate, key := b.search.AdminCertificate()
	c, err := search.New(search.Settings{URL: b.search.URL(), CA: b.search.CA(), Certificate: certificate, Key: key, Local: true})
	if err != nil {
		b.T.Fatal(err)
	}
	b.T.Cleanup(c.Close)
	return c
}

func (b *bed) names(c *search.Client, kind plan.Kind) []string {
	b.T.Helper()
	all, err := c.List(b.T.Context(), kind)
	if err != nil {
		b.T.Fatal(err)
	}
	return slices.Sorted(maps.Keys(all))
}

// bodies are contents that OpenSearch takes, by kind.
func bodies() map[plan.Kind]plan.Body {
	return map[plan.Kind]plan.Body{
		plan.Users: {"attributes": map[string]any{"k8s-uid": "u"}, "backend_roles": []any{"a"}}, plan.Tenants: {"description": "d"},
		plan.Roles:        {"cluster_permissions": []any{"cluster_monitor"}, "index_permissions": []any{}, "tenant_permissions": []any{}},
		plan.ActionGroups: {"allowed_actions": []any{"read"}, "type": "index"},
	}
}

// Each name is written and removed in each way that the client has: nothing else may change.
func TestClientWritesExactlyTheNameThatIsMeant(t *testing.T) {
	b := newBed(t)
	c := b.raw()
	for _, name := range []string{
		"a/b", "/", "a//b/", "%2F", "a%2Fb", "%7E1", "a+b", "a b", "a;b", "a,b", "a?b=c", "a#b", "a&b", "a=b", "id=1", "-", "0", "01", "*", "a*", "/.*/", ".", "..",
		`a\b`, `"`, "'", "{x}", "${x}", "[0]", "$", "@", "é", "e\u0301", "ﬀ", "😀", "a\u200bb", "_meta", "_doc", "config_version", "type", "hash", "null", "true",
		"A", "a", strings.Repeat("😀", 256),
	} {
		for kind, body := range bodies() {
			before := b.names(c, kind)
			write := plan.Action{Name: name, Body: body}
			err := c.Patch(t.Context(), kind, []plan.Action{write})
			if kind == plan.Users {
				err = errors.Join(err, c.PutUser(t.Context(), name, body, first))
			}
			if _, refused := errors.AsType[*search.RefusedError](err); refused {
				if now := b.names(c, kind); !slices.Equal(now, before) && !slices.Equal(now, with(before, name)) {
					t.Errorf("%s %.40q is refused (%v), and there are %q", kind, name, err, now)
				}
				t.Logf("%s %.40q: %v", kind, name, err)
			} else if err != nil {
				t.Fatal(err)
			}
			if now := b.names(c, kind); err == nil && !slices.Equal(now, with(before, name)) {
				t.Errorf("%s %.40q is written, and there are %q", kind, name, now)
			}
			if slices.Contains(b.names(c, kind), name) {
				if err := c.Patch(t.Context(), kind, []plan.Action{{Name: name}}); err != nil {
					t.Errorf("%s %.40q is not removed: %v", kind, name, err)
				}
			}
			if now := b.names(c, kind); !slices.Equal(now, before) {
				t.Fatalf("%s %.40q is removed, and there are %q, want %q", kind, name, now, before)
			}
		}
	}
}

// with returns the names and one more, sorted.
func with(names []string, name string) []string {
	return slices.Sorted(slices.Values(append(slices.Clone(names), name)))
}

func TestNameWithTildeChangesNothingElse(t *testing.T) {
	b := newBed(t)
	a := b.alice()
	for kind, fields := range map[kinds.Kind]map[string]any{
		kinds.OpenSearchUsers(): mine(), kinds.OpenSearchRoles(): {"clusterPermissions": []any{"*"}},
		kinds.OpenSearchTenants(): {}, kinds.OpenSearchActionGroups(): {"allowedActions": []any{"read"}},
	} {
		fields["name"] = "team~1admin"
		a.refused(a.create(kind, "tilde", fields), "spec.name")
	}
	a.refused(a.create(kinds.OpenSearchBindings(), "tilde", map[string]any{"roles": []any{"team~1admin"}, "users": []any{"a"}}), "spec.roles[0]")

	c := b.raw()
	for kind, body := range bodies() {
		content := maps.Clone(map[string]any(body))
		if kind == plan.Users {
			content["password"] = first
		}
		for _, path := range []string{"team%2Fadmin", "team~1admin"} { // By its path OpenSearch reads each name as it is.
			b.write(string(kind)+"/"+path, content)
		}
		before := b.names(c, kind)
		write := plan.Action{Name: "team~1admin", Body: body}
		err := errors.Join(c.Patch(t.Context(), kind, []plan.Action{write}), c.PutUser(t.Context(), write.Name, body, second))
		if _, refused := errors.AsType[*search.RefusedError](err); !refused || !slices.Equal(b.names(c, kind), before) {
			t.Errorf("%s: got %v, want a refusal", kind, err)
		}
		if err := c.Patch(t.Context(), kind, []plan.Action{{Name: write.Name}}); err != nil {
			t.Error(err)
		}
		if now := b.names(c, kind); !slices.Equal(with(now, write.Name), before) {
			t.Errorf("%s: got %q, want all of %q but %s", kind, now, before, write.Name)
		}
	}
	if status, _ := b.search.Login(t, "team/admin", first); status != http.StatusOK {
		t.Errorf("got %d, want the password of the other user as it was", status)
	}
}
