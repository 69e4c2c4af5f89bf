//go:build integration

package apitest_test

import (
	"context"
	"errors"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestOpenSearchPolicyRequiresAdopt(t *testing.T) {
	server := permitSearch(t)
	for _, annotation := range []map[string]string{{opensearchv1.AdoptAnnotation: "true"}, {opensearchv1.SourceUIDAnnotation: "u"}} {
		for kind, spec := range map[string]map[string]any{
			"OpensearchUser": {"passwordFrom": secret("mine")}, "OpensearchRole": {"clusterPermissions": list("x")},
			"OpensearchTenant": nil, "OpensearchActionGroup": {"allowedActions": list("x")},
		} {
			annotated := searchObject(kind, spec)
			annotated.SetAnnotations(annotation)
			dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			_, err := searchObjects(t, server, searchAuthor, kind).Create(t.Context(), annotated, dry)
			expectError(t, err, "needs the verb adopt")
			_, err = searchObjects(t, server, "", kind).Create(t.Context(), annotated, dry)
			expectError(t, err, "")
		}
	}
	made, err := searchObjects(t, server, searchAuthor, "OpensearchTenant").Create(t.Context(), searchObject("OpensearchTenant", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = searchObjects(t, server, "", "OpensearchTenant").Delete(context.WithoutCancel(t.Context()), made.GetName(), metav1.DeleteOptions{})
	})
	made.SetAnnotations(map[string]string{opensearchv1.AdoptAnnotation: "true"})
	_, err = searchObjects(t, server, searchAuthor, "OpensearchTenant").Update(t.Context(), made, metav1.UpdateOptions{})
	expectError(t, err, "needs the verb adopt")
	if made, err = searchObjects(t, server, "", "OpensearchTenant").Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	made.Object["spec"] = with(map[string]any{"description": "new"})
	_, err = searchObjects(t, server, searchAuthor, "OpensearchTenant").Update(t.Context(), made, metav1.UpdateOptions{})
	expectError(t, err, "") // The administrator has set the annotation.
}

// The kinds were in another API group before, and some clusters still serve that group.
func TestOpenSearchPolicyHoldsForLegacyGroup(t *testing.T) {
	server := permitSearch(t)
	server.ServeLegacyOpenSearch(t)
	legacy := opensearchv1.GroupVersion
	legacy.Group = opensearchv1.LegacyGroup
	server.GrantUser(t, namespace, "legacy-author",
		rbacv1.PolicyRule{APIGroups: []string{legacy.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"}})
	for name, c := range map[string]struct {
		kind      string
		spec      map[string]any
		annotated map[string]string
		want      string
	}{
		"a Secret of one's own": {"OpensearchUser", map[string]any{"passwordFrom": secret("mine")}, nil, ""},
		"another's Secret":      {"OpensearchUser", map[string]any{"passwordFrom": secret("theirs")}, nil, "needs the verb get"},
		"a protected role":      {"OpensearchUserRoleBinding", map[string]any{"roles": list("all_access"), "users": list("a")}, nil, "needs the verb bind"},
		"what is there already": {"OpensearchTenant", nil, map[string]string{opensearchv1.AdoptAnnotation: "true"}, "needs the verb adopt"},
		"a role of nothing":     {"OpensearchRole", nil, nil, "needs at least one"},
		"a group of nothing":    {"OpensearchActionGroup", map[string]any{"allowedActions": list()}, nil, "needs at least one"},
		"where a cluster is":    {"OpenSearchCluster", connection("https://x:9200"), nil, "needs the verb connect"},
	} {
		t.Run(name, func(t *testing.T) {
			o := searchObject(c.kind, c.spec)
			o.SetAPIVersion(legacy.String())
			o.SetAnnotations(c.annotated)
			api := objectsAs(t, server, "legacy-author", o)
			var err error
			// The policy and the right for the new definition take effect later.
			testenv.Eventually(t, soon, func() error {
				_, err = api.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err != nil && lacksRight(err) || err == nil && c.want != "" {
					return errors.Join(errors.New("not refused by a policy"), err)
				}
				return nil
			})
			expectError(t, err, c.want)
		})
	}
}

func TestOpenSearchPolicyHoldsDuringDeletion(t *testing.T) {
	server := permitSearch(t)
	for name, c := range map[string]struct {
		kind         string
		before, then map[string]any
		want         string
	}{
		"another name":     {"OpensearchTenant", map[string]any{"name": "a"}, map[string]any{"name": "b"}, "spec.name cannot change"},
		"another cluster":  {"OpensearchTenant", nil, map[string]any{"opensearchCluster": map[string]any{"name": "other"}}, "spec.opensearchCluster cannot change"},
		"a cluster's host": {"OpenSearchCluster", connection("https://x:9200"), connection("https://y:9200"), "needs the verb connect"},
	} {
		t.Run(name, func(t *testing.T) {
			all := searchObjects(t, server, "", c.kind)
			held := searchObject(c.kind, c.before)
			held.SetFinalizers([]string{"entail.dev/test"})
			made, err := all.Create(t.Context(), held, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if err := all.Delete(t.Context(), made.GetName(), metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			made, err = all.Get(t.Context(), made.GetName(), metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			moved := made.DeepCopy()
			moved.Object["spec"] = with(c.then)
			_, err = searchObjects(t, server, searchAuthor, c.kind).Update(t.Context(), moved, metav1.UpdateOptions{})
			expectError(t, err, c.want)
			made.SetFinalizers(nil)
			_, err = searchObjects(t, server, searchAuthor, c.kind).Update(t.Context(), made, metav1.UpdateOptions{})
			expectError(t, err, "") // The finalizer can always be removed.
		})
	}
}

func TestOpenSearchPolicyRequiresRightsOnReferences(t *testing.T) {
	server := permitSearch(t)
	const user, role, binding, cluster, group = "OpensearchUser", "OpensearchRole", "OpensearchUserRoleBinding", "OpenSearchCluster", "OpensearchActionGroup"
	for name, c := range map[string]struct {
		who, kind string
		spec      map[string]any
		want      string
	}{
		"one's own Secret":                {searchAuthor, user, map[string]any{"passwordFrom": secret("mine")}, ""},
		"a Secret of others":              {searchAuthor, user, map[string]any{"passwordFrom": secret("theirs")}, "needs the verb get on that Secret"},
		"no Secret":                       {searchAuthor, user, map[string]any{"passwordFrom": map[string]any{"key": "x"}}, "needs the name of a Secret"},
		"a name with a colon":             {searchAuthor, user, map[string]any{"passwordFrom": secret("mine"), "name": "a:b"}, "no user name with ':'"},
		"all access by the user":          {searchAuthor, user, map[string]any{"passwordFrom": secret("mine"), "opendistroSecurityRoles": list("all_access")}, "it gives all_access"},
		"all access by a backend role":    {searchAuthor, user, map[string]any{"passwordFrom": secret("mine"), "backendRoles": list("admin")}, "it gives all_access"},
		"snapshots by a backend role":     {searchAuthor, user, map[string]any{"passwordFrom": secret("mine"), "backendRoles": list("snapshotrestore")}, "it gives manage_snapshots"},
		"what one may bind, by one":       {searchAuthor, user, map[string]any{"passwordFrom": secret("mine"), "backendRoles": list("readall")}, ""},
		"dashboards by a backend role":    {searchAuthor, user, map[string]any{"passwordFrom": secret("mine"), "backendRoles": list("kibanauser")}, "it gives kibana_user"},
		"data sources of addresses":       {searchAuthor, binding, map[string]any{"roles": list("ip2geo_datasource_full_access"), "users": list("anna")}, "it gives ip2geo_datasource_full_access"},
		"another backend role":            {searchAuthor, user, map[string]any{"passwordFrom": secret("mine"), "backendRoles": list("dev")}, ""},
		"a role that gives nothing":       {searchAuthor, role, nil, "at least one of"},
		"a role":                          {searchAuthor, role, map[string]any{"clusterPermissions": list("cluster_monitor")}, ""},
		"an empty action group":           {searchAuthor, group, map[string]any{"allowedActions": list()}, "at least one action"},
		"a binding":                       {searchAuthor, binding, map[string]any{"roles": list("logs"), "users": list("anna")}, ""},
		"a binding of nobody":             {searchAuthor, binding, map[string]any{"roles": list("logs")}, "a binding needs"},
		"a binding of no role":            {searchAuthor, binding, map[string]any{"roles": list(), "users": list("anna")}, "spec.roles needs"},
		"all access":                      {searchAuthor, binding, map[string]any{"roles": list("logs", "all_access"), "users": list("anna")}, "it gives all_access"},
		"the security API":                {searchAuthor, binding, map[string]any{"roles": list("security_rest_api_access"), "hosts": list("*")}, "it gives security_rest_api_access"},
		"what one may bind":               {searchAuthor, binding, map[string]any{"roles": list("readall"), "users": list("anna")}, ""},
		"that and more":                   {searchAuthor, binding, map[string]any{"roles": list("readall", "all_access"), "users": list("anna")}, "needs the verb bind"},
		"a cluster":                       {searchAuthor, cluster, connection("https://x:9200"), "needs the verb connect"},
		"a cluster that one may tell of":  {searchConnector, cluster, connection("https://x:9200", "mine", "mine", "mine"), ""},
		"its certificate is of others":    {searchConnector, cluster, connection("https://x:9200", "theirs"), "names Secret theirs"},
		"its credentials are of others":   {searchConnector, cluster, connection("https://x:9200", "mine", "theirs"), "names Secret theirs"},
		"its authority is of others":      {searchConnector, cluster, connection("https://x:9200", "mine", "mine", "theirs"), "names Secret theirs"},
		"an operator's is of others":      {searchConnector, cluster, map[string]any{"security": map[string]any{"config": map[string]any{"adminCredentialsSecret": map[string]any{"name": "theirs"}}}}, "names Secret theirs"},
		"an operator's own are of others": {searchConnector, cluster, map[string]any{"general": map[string]any{"operatorClusterURL": "x"}}, "names Secret tried-admin-password"},
		"a cluster without encryption":    {searchConnector, cluster, connection("http://x:9200"), "should match"},
		"a cluster with a path":           {searchConnector, cluster, connection("https://x:9200/a?b"), "should match"},
		"credentials are not for the URL": {searchConnector, cluster, connection("https://a:b@x:9200"), "should match"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := searchObjects(t, server, c.who, c.kind).Create(t.Context(), searchObject(c.kind, c.spec), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			expectError(t, err, c.want)
		})
	}
}

func TestOpenSearchPolicyRefusesMoves(t *testing.T) {
	server := permitSearch(t)
	for name, c := range map[string]struct {
		kind         string
		before, then map[string]any
		want         string
	}{
		"another cluster": {
			"OpensearchTenant", nil, map[string]any{"opensearchCluster": map[string]any{"name": "other"}}, "spec.opensearchCluster cannot change",
		},
		"another name":   {"OpensearchTenant", map[string]any{"name": "a"}, map[string]any{"name": "b"}, "spec.name cannot change"},
		"something else": {"OpensearchTenant", nil, map[string]any{"description": "new"}, ""},
		"more users of a role that others gave": {
			"OpensearchUserRoleBinding",
			map[string]any{"roles": list("all_access"), "users": list("anna")},
			map[string]any{"roles": list("all_access"), "users": list("anna", "me")},
			"it gives all_access",
		},
		"a user of such a role as a backend role": {
			"OpensearchUserRoleBinding",
			map[string]any{"roles": list("all_access"), "users": list("anna")},
			map[string]any{"roles": list("all_access"), "backendRoles": list("anna")},
			"it gives all_access",
		},
		"one of its joint backend roles by itself": {
			"OpensearchUserRoleBinding",
			map[string]any{"roles": list("all_access"), "andBackendRoles": list("a", "b")},
			map[string]any{"roles": list("all_access"), "andBackendRoles": list("a", "b"), "backendRoles": list("a")},
			"it gives all_access",
		},
		"fewer users of a role that others gave": {
			"OpensearchUserRoleBinding",
			map[string]any{"roles": list("all_access"), "users": list("anna", "ben")},
			map[string]any{"roles": list("all_access"), "users": list("anna")},
			"",
		},
		"the password of a user to whom others gave a role": {
			"OpensearchUser",
			map[string]any{"passwordFrom": secret("theirs"), "opendistroSecurityRoles": list("all_access")},
			map[string]any{"passwordFrom": secret("mine"), "opendistroSecurityRoles": list("all_access")},
			"it gives all_access",
		},
		"its backend roles": {
			"OpensearchUser",
			map[string]any{"passwordFrom": secret("theirs"), "opendistroSecurityRoles": list("all_access")},
			map[string]any{"passwordFrom": secret("theirs"), "opendistroSecurityRoles": list("all_access"), "backendRoles": list("dev")},
			"it gives all_access",
		},
		"its description": {
			"OpensearchUser",
			map[string]any{"passwordFrom": secret("theirs"), "backendRoles": list("admin")},
			map[string]any{"passwordFrom": secret("theirs"), "backendRoles": list("admin"), "description": "new"},
			"",
		},
		"its password and no role": {
			"OpensearchUser",
			map[string]any{"passwordFrom": secret("theirs"), "backendRoles": list("admin")},
			map[string]any{"passwordFrom": secret("mine")},
			"",
		},
		"a Secret that others referred to stays": {
			"OpensearchUser",
			map[string]any{"passwordFrom": secret("theirs")},
			map[string]any{"passwordFrom": secret("theirs"), "description": "new"},
			"",
		},
		"another key of it": {
			"OpensearchUser",
			map[string]any{"passwordFrom": secret("theirs")},
			map[string]any{"passwordFrom": map[string]any{"name": "theirs", "key": "root"}},
			"needs the verb get",
		},
		"a cluster moves": {
			"OpenSearchCluster", connection("https://x:9200"), connection("https://y:9200"), "needs the verb connect",
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := searchObjects(t, server, "", c.kind)
			made, err := all.Create(t.Context(), searchObject(c.kind, c.before), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = all.Delete(context.WithoutCancel(t.Context()), made.GetName(), metav1.DeleteOptions{}) })
			made.Object["spec"] = with(c.then)
			_, err = searchObjects(t, server, searchAuthor, c.kind).Update(t.Context(), made, metav1.UpdateOptions{})
			expectError(t, err, c.want)
		})
	}
}
