//go:build integration

package v1_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
	"github.com/entail-dev/entail/services/internal/testbed"
)

const (
	namespace = "default"
	// author may write what is asked of OpenSearch, and read the Secret "mine".
	author = "search-author"
	// connector may also say where a cluster is.
	connector = "search-connector"
	// soon is time enough for a policy or a role to take effect.
	soon = 60 * time.Second
)

// object is one of a kind with a spec.
func object(kind string, spec map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": opensearchv1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{"name": "tried"}, "spec": with(spec),
	}}
}

func TestWhatIsInOpenSearchIsTakenOverByWhoMay(t *testing.T) {
	server := permitting(t)
	for _, annotation := range []map[string]string{{opensearchv1.AdoptAnnotation: "true"}, {opensearchv1.SourceUIDAnnotation: "u"}} {
		for kind, spec := range map[string]map[string]any{
			"OpensearchUser": {"passwordFrom": secret("mine")}, "OpensearchRole": {"clusterPermissions": list("x")},
			"OpensearchTenant": nil, "OpensearchActionGroup": {"allowedActions": list("x")},
		} {
			annotated := object(kind, spec)
			annotated.SetAnnotations(annotation)
			dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			_, err := objects(server, author, kind).Create(t.Context(), annotated, dry)
			expect(t, err, "takes the verb adopt")
			_, err = objects(server, "", kind).Create(t.Context(), annotated, dry)
			expect(t, err, "")
		}
	}
	made, err := objects(server, author, "OpensearchTenant").Create(t.Context(), object("OpensearchTenant", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = objects(server, "", "OpensearchTenant").Delete(context.WithoutCancel(t.Context()), made.GetName(), metav1.DeleteOptions{})
	})
	made.SetAnnotations(map[string]string{opensearchv1.AdoptAnnotation: "true"})
	_, err = objects(server, author, "OpensearchTenant").Update(t.Context(), made, metav1.UpdateOptions{})
	expect(t, err, "takes the verb adopt")
	if made, err = objects(server, "", "OpensearchTenant").Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	made.Object["spec"] = with(map[string]any{"description": "new"})
	_, err = objects(server, author, "OpensearchTenant").Update(t.Context(), made, metav1.UpdateOptions{})
	expect(t, err, "") // Who allowed it has.
}

// Whoever may write objects of the group that the kinds had before gets nothing by them that they would not get now.
func TestTheLegacyGroupIsNoWayAroundAdmission(t *testing.T) {
	server := permitting(t)
	server.ServeLegacyOpenSearch(t)
	legacy := opensearchv1.GroupVersion
	legacy.Group = opensearchv1.LegacyGroup
	grant(t, server, "legacy-author",
		rbacv1.PolicyRule{APIGroups: []string{legacy.Group}, Resources: []string{"*"}, Verbs: []string{"*"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"}})
	cfg := server.Admin()
	cfg.Impersonate = rest.ImpersonationConfig{UserName: "legacy-author"}
	for name, c := range map[string]struct {
		kind      string
		spec      map[string]any
		annotated map[string]string
		want      string
	}{
		"a Secret of one's own": {"OpensearchUser", map[string]any{"passwordFrom": secret("mine")}, nil, ""},
		"another's Secret":      {"OpensearchUser", map[string]any{"passwordFrom": secret("theirs")}, nil, "takes the verb get"},
		"a protected role":      {"OpensearchUserRoleBinding", map[string]any{"roles": list("all_access"), "users": list("a")}, nil, "takes the verb bind"},
		"what is there already": {"OpensearchTenant", nil, map[string]string{opensearchv1.AdoptAnnotation: "true"}, "takes the verb adopt"},
		"a role of nothing":     {"OpensearchRole", nil, nil, "needs at least one"},
		"a group of nothing":    {"OpensearchActionGroup", map[string]any{"allowedActions": list()}, nil, "needs at least one"},
		"where a cluster is":    {"OpenSearchCluster", connection("https://x:9200"), nil, "takes the verb connect"},
	} {
		t.Run(name, func(t *testing.T) {
			o := object(c.kind, c.spec)
			o.SetAPIVersion(legacy.String())
			o.SetAnnotations(c.annotated)
			api := dynamic.NewForConfigOrDie(cfg).Resource(legacy.WithResource(strings.ToLower(c.kind) + "s")).Namespace(namespace)
			var err error
			testbed.Eventually(t, soon, func() error { // The role may not be in force yet, nor the policy for what has just been defined.
				_, err = api.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
				if err != nil && strings.Contains(err.Error(), "RBAC") || err == nil && c.want != "" {
					return errors.Join(errors.New("not refused by a policy"), err)
				}
				return nil
			})
			expect(t, err, c.want)
		})
	}
}

func TestWhatIsBeingDeletedStaysWhereItIs(t *testing.T) {
	server := permitting(t)
	for name, c := range map[string]struct {
		kind         string
		before, then map[string]any
		want         string
	}{
		"another name":     {"OpensearchTenant", map[string]any{"name": "a"}, map[string]any{"name": "b"}, "spec.name cannot change"},
		"another cluster":  {"OpensearchTenant", nil, map[string]any{"opensearchCluster": map[string]any{"name": "other"}}, "spec.opensearchCluster cannot change"},
		"a cluster's host": {"OpenSearchCluster", connection("https://x:9200"), connection("https://y:9200"), "takes the verb connect"},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(server, "", c.kind)
			held := object(c.kind, c.before)
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
			_, err = objects(server, author, c.kind).Update(t.Context(), moved, metav1.UpdateOptions{})
			expect(t, err, c.want)
			made.SetFinalizers(nil)
			_, err = objects(server, author, c.kind).Update(t.Context(), made, metav1.UpdateOptions{})
			expect(t, err, "") // Whatever it says, it can go.
		})
	}
}

// with adds the cluster to a spec that has none.
func with(spec map[string]any) map[string]any {
	all := map[string]any{"opensearchCluster": map[string]any{"name": "search"}}
	maps.Copy(all, spec)
	return all
}

func secret(name string) map[string]any { return map[string]any{"name": name, "key": "password"} }

func connection(url string, secrets ...string) map[string]any {
	c := map[string]any{"url": url}
	for i, field := range []string{"clientCertificateSecret", "adminCredentialsSecret", "caSecret"}[:len(secrets)] {
		c[field] = map[string]any{"name": secrets[i]}
	}
	return map[string]any{"connection": c}
}

func list(texts ...any) []any { return append([]any{}, texts...) }

func TestNobodyAsksOpenSearchForWhatIsNotTheirs(t *testing.T) {
	server := permitting(t)
	const user, role, binding, cluster, group = "OpensearchUser", "OpensearchRole", "OpensearchUserRoleBinding", "OpenSearchCluster", "OpensearchActionGroup"
	for name, c := range map[string]struct {
		who, kind string
		spec      map[string]any
		want      string
	}{
		"one's own Secret":                {author, user, map[string]any{"passwordFrom": secret("mine")}, ""},
		"a Secret of others":              {author, user, map[string]any{"passwordFrom": secret("theirs")}, "takes the verb get on that Secret"},
		"no Secret":                       {author, user, map[string]any{"passwordFrom": map[string]any{"key": "x"}}, "needs the name of a Secret"},
		"a name with a colon":             {author, user, map[string]any{"passwordFrom": secret("mine"), "name": "a:b"}, "no user name with ':'"},
		"all access by the user":          {author, user, map[string]any{"passwordFrom": secret("mine"), "opendistroSecurityRoles": list("all_access")}, "it gives all_access"},
		"all access by a backend role":    {author, user, map[string]any{"passwordFrom": secret("mine"), "backendRoles": list("admin")}, "it gives all_access"},
		"snapshots by a backend role":     {author, user, map[string]any{"passwordFrom": secret("mine"), "backendRoles": list("snapshotrestore")}, "it gives manage_snapshots"},
		"what one may bind, by one":       {author, user, map[string]any{"passwordFrom": secret("mine"), "backendRoles": list("readall")}, ""},
		"another backend role":            {author, user, map[string]any{"passwordFrom": secret("mine"), "backendRoles": list("dev")}, ""},
		"a role that gives nothing":       {author, role, nil, "at least one of"},
		"a role":                          {author, role, map[string]any{"clusterPermissions": list("cluster_monitor")}, ""},
		"an empty action group":           {author, group, map[string]any{"allowedActions": list()}, "at least one action"},
		"a binding":                       {author, binding, map[string]any{"roles": list("logs"), "users": list("anna")}, ""},
		"a binding of nobody":             {author, binding, map[string]any{"roles": list("logs")}, "a binding needs"},
		"a binding of no role":            {author, binding, map[string]any{"roles": list(), "users": list("anna")}, "spec.roles needs"},
		"all access":                      {author, binding, map[string]any{"roles": list("logs", "all_access"), "users": list("anna")}, "it gives all_access"},
		"the security API":                {author, binding, map[string]any{"roles": list("security_rest_api_access"), "hosts": list("*")}, "it gives security_rest_api_access"},
		"what one may bind":               {author, binding, map[string]any{"roles": list("readall"), "users": list("anna")}, ""},
		"that and more":                   {author, binding, map[string]any{"roles": list("readall", "all_access"), "users": list("anna")}, "takes the verb bind"},
		"a cluster":                       {author, cluster, connection("https://x:9200"), "takes the verb connect"},
		"a cluster that one may tell of":  {connector, cluster, connection("https://x:9200", "mine", "mine", "mine"), ""},
		"its certificate is of others":    {connector, cluster, connection("https://x:9200", "theirs"), "names Secret theirs"},
		"its credentials are of others":   {connector, cluster, connection("https://x:9200", "mine", "theirs"), "names Secret theirs"},
		"its authority is of others":      {connector, cluster, connection("https://x:9200", "mine", "mine", "theirs"), "names Secret theirs"},
		"an operator's is of others":      {connector, cluster, map[string]any{"security": map[string]any{"config": map[string]any{"adminCredentialsSecret": map[string]any{"name": "theirs"}}}}, "names Secret theirs"},
		"an operator's own are of others": {connector, cluster, map[string]any{"general": map[string]any{"operatorClusterURL": "x"}}, "names Secret tried-admin-password"},
		"a cluster without encryption":    {connector, cluster, connection("http://x:9200"), "should match"},
		"a cluster with a path":           {connector, cluster, connection("https://x:9200/a?b"), "should match"},
		"credentials are not for the URL": {connector, cluster, connection("https://a:b@x:9200"), "should match"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := objects(server, c.who, c.kind).Create(t.Context(), object(c.kind, c.spec), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			expect(t, err, c.want)
		})
	}
}

func TestWhatIsAskedOfOpenSearchStaysWhereItIs(t *testing.T) {
	server := permitting(t)
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
		"fewer users of a role that others gave": {
			"OpensearchUserRoleBinding",
			map[string]any{"roles": list("all_access"), "users": list("anna", "ben")},
			map[string]any{"roles": list("all_access"), "users": list("anna")},
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
			"takes the verb get",
		},
		"a cluster moves": {
			"OpenSearchCluster", connection("https://x:9200"), connection("https://y:9200"), "takes the verb connect",
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := objects(server, "", c.kind)
			made, err := all.Create(t.Context(), object(c.kind, c.before), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = all.Delete(context.WithoutCancel(t.Context()), made.GetName(), metav1.DeleteOptions{}) })
			made.Object["spec"] = with(c.then)
			_, err = objects(server, author, c.kind).Update(t.Context(), made, metav1.UpdateOptions{})
			expect(t, err, c.want)
		})
	}
}

func expect(t *testing.T, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("refused: %v", err)
	case want != "" && err == nil:
		t.Error("accepted")
	case want != "" && !strings.Contains(err.Error(), want):
		t.Errorf("the refusal %q lacks %q", err, want)
	}
}

// objects of a kind in the hands of a user; an administrator without a name.
func objects(server *testbed.KubeServer, user, kind string) dynamic.ResourceInterface {
	cfg := server.Admin()
	if user != "" {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: user}
	}
	resource := opensearchv1.GroupVersion.WithResource(strings.ToLower(kind) + "s")
	return dynamic.NewForConfigOrDie(cfg).Resource(resource).Namespace(namespace)
}

// permitting is a server on which the author may do what [author] says, with policies in force.
func permitting(t *testing.T) *testbed.KubeServer {
	t.Helper()
	server := testbed.Kube(t)
	group, write := opensearchv1.GroupVersion.Group, []string{"create", "get", "update", "patch"}
	common := []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{"*"}, Verbs: write},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"mine"}, Verbs: []string{"get"}},
		{APIGroups: []string{group}, Resources: []string{"opensearchroles"}, ResourceNames: []string{"readall"}, Verbs: []string{"bind"}},
	}
	grant(t, server, author, common...)
	grant(t, server, connector, append(common, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{opensearchv1.Clusters}, Verbs: []string{"connect"}})...)
	for who, kinds := range map[string]map[string]map[string]any{
		author: {
			"OpensearchUser":            {"passwordFrom": secret("theirs")},
			"OpensearchUserRoleBinding": {"roles": list("all_access"), "users": list("a")},
			"OpensearchRole":            nil, "OpensearchActionGroup": {"allowedActions": list()},
			"OpenSearchCluster": connection("https://x:9200"),
		},
		connector: {"OpenSearchCluster": connection("https://x:9200", "theirs")},
	} {
		for kind, spec := range kinds {
			testbed.Eventually(t, soon, func() error {
				dry := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
				if _, err := objects(server, who, kind).Create(t.Context(), object(kind, spec), dry); err == nil || strings.Contains(err.Error(), "RBAC") {
					return errors.Join(errors.New("policy or role not in force"), err)
				}
				return nil
			})
		}
	}
	return server
}

// grant gives rights in the namespace to a user, until the test ends.
func grant(t *testing.T, server *testbed.KubeServer, user string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	api := kubernetes.NewForConfigOrDie(server.Admin()).RbacV1()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: namespace}, Rules: rules}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user, Namespace: namespace}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}
	_, err := api.Roles(namespace).Create(t.Context(), role, metav1.CreateOptions{})
	if err == nil {
		_, err = api.RoleBindings(namespace).Create(t.Context(), binding, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		_ = api.RoleBindings(namespace).Delete(ctx, user, metav1.DeleteOptions{})
		_ = api.Roles(namespace).Delete(ctx, user, metav1.DeleteOptions{})
	})
}
