//go:build e2e

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// of returns the extra fields with which a request claims the parent of its object.
func of(group, kind, name string) map[string][]string {
	return map[string][]string{
		"iam.miloapis.com/parent-api-group": {group}, "iam.miloapis.com/parent-type": {kind}, "iam.miloapis.com/parent-name": {name},
	}
}

// attacks sends requests of a user with little access who claims more. Mallory has full access to the project of
// organization evil, and no other access.
func attacks(t *testing.T, m *machine) {
	t.Helper()
	all := []any{".get", ".list", ".delete", ".deletecollection", ".patch", ".create", ".update"}
	uid := declare(t, m.objects(t), "iam.miloapis.com/User", "mallory", map[string]any{"email": "mallory@example.com"})
	group := declare(t, m.objects(t), "iam.miloapis.com/Group", "admins", map[string]any{})
	evil := declare(t, m.objects(t), resourceManager+"/Organization", "evil", map[string]any{"type": "Standard"})
	declare(t, m.objects(t), resourceManager+"/Organization", "acme", map[string]any{"type": "Standard"})
	own := declare(t, m.objects(t), resourceManager+"/Project", "own", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "evil"}})
	declare(t, m.objects(t), resourceManager+"/Project", "another", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	mallory := map[string]any{"kind": "User", "name": "mallory", "uid": uid}
	m.give(t, "admins", resourceManager+"/Project", map[string]any{"kind": "Group", "name": "admins", "namespace": "default", "uid": group}, all...)
	bindOn := func(name, kind, object, uid string) {
		declare(t, m.objects(t), "iam.miloapis.com/PolicyBinding", name, map[string]any{
			"roleRef": map[string]any{"name": "admins"}, "subjects": []any{mallory},
			"resourceSelector": map[string]any{"resourceRef": map[string]any{"apiGroup": resourceManager, "kind": kind, "name": object, "uid": uid}},
		})
	}
	bindOn("of-evil", "Organization", "evil", evil)
	bindOn("on-own", "Project", "own", own)
	as := rest.ImpersonationConfig{UserName: "mallory"}
	eventually(t, soon, "mallory may in the project of evil", m.as(t, as).may("GET /apis/"+resourceManager+"/v1alpha1/projects/own", true))
	const projects = "/apis/resourcemanager.miloapis.com/v1alpha1/projects"
	for who, c := range map[string]rest.ImpersonationConfig{
		"by name":                               as,
		"who says that all is of evil":          {UserName: "mallory", Extra: of(resourceManager, "Organization", "evil")},
		"who says that all is of the project":   {UserName: "mallory", Extra: of(resourceManager, "Project", "own")},
		"who says that all is of the namespace": {UserName: "mallory", Extra: of("core.miloapis.com", "Namespace", "default")},
	} {
		p := m.as(t, c)
		for request, want := range map[string]bool{
			"GET " + projects + "/own":                                                          true,
			"GET " + projects + "?fieldSelector=metadata.name%3Down":                            true,
			"DELETE " + projects + "/another":                                                   false,
			"GET " + projects + "/another":                                                      false,
			"PATCH " + projects + "/another":                                                    false,
			"GET " + projects + "?fieldSelector=metadata.name%3Danother":                        false,
			"GET " + projects:                                                                   false,
			"GET " + projects + "?fieldSelector=metadata.name!%3Danother":                       false,
			"DELETE " + projects:                                                                false,
			"DELETE " + projects + "?fieldSelector=metadata.name!%3Down":                        false,
			"DELETE " + projects + "?fieldSelector=metadata.name%3Danother":                     false,
			"POST " + projects:                                                                  false,
			"GET /apis/" + resourceManager + "/v1alpha1/organizations/acme":                     false,
			"GET /apis/iam.miloapis.com/v1alpha1/namespaces/default/policybindings":             false,
			"GET /apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.resourcemanager":          false,
			"POST /apis/authorization.k8s.io/v1/subjectaccessreviews":                           false,
			"GET /api/v1/namespaces/default/secrets":                                            false,
			"GET /apis/nobody.example.com/v1/namespaces/default/things?fieldSelector=a%3Db":     false,
			"GET /apis/iam.miloapis.com/v1alpha1/namespaces/default/policybindings/of-evil":     false,
			"PATCH /apis/iam.miloapis.com/v1alpha1/namespaces/default/policybindings/of-evil":   false,
			"DELETE /apis/iam.miloapis.com/v1alpha1/namespaces/default/policybindings/of-evil/": false,
		} {
			if err := p.may(request, want)(t.Context()); err != nil {
				t.Errorf("mallory, %s: %v", who, err)
			}
		}
	}
	for who, c := range map[string]rest.ImpersonationConfig{
		"by a group called like a UID":       {UserName: "x", Groups: []string{group}},
		"by a group called like another":     {UserName: "x", Groups: []string{"admins", "default/admins", "g/default/admins"}},
		"by a group called like members":     {UserName: "x", Groups: []string{"group:" + group + "#member", "iam.miloapis.com/InternalUserGroup:" + group + "#member"}},
		"by a name called like a UID":        {UserName: uid},
		"by a name called like a tuple's":    {UserName: "u/mallory"},
		"by a name that is everybody":        {UserName: "*", Groups: []string{"*", "system:authenticated"}},
		"by a name that OpenFGA cannot read": {UserName: "mallory#member", Groups: []string{"Domain Users", "a:b#c", strings.Repeat("g", 600)}},
	} {
		code, answer, err := m.as(t, c).send(t.Context(), "GET "+projects+"/own", "")
		if err != nil || code != http.StatusForbidden || !strings.Contains(answer, "missing permission") {
			t.Errorf("%s: %d %s, %v", who, code, answer, err)
		}
	}
	everything(t, m.as(t, as))
}

// everything sends the reviews of `kubectl auth can-i '*' '*'`, `can-i get /metrics` and `can-i --list`.
func everything(t *testing.T, p *person) {
	t.Helper()
	const reviews = "POST /apis/authorization.k8s.io/v1/selfsubject"
	for what, c := range map[string]struct{ request, spec, want string }{
		"everything":    {"accessreviews", `{"resourceAttributes":{"verb":"*","group":"*","resource":"*"}}`, `"allowed":false`},
		"a path":        {"accessreviews", `{"nonResourceAttributes":{"verb":"get","path":"/metrics"}}`, `"allowed":false`},
		"a project":     {"accessreviews", `{"resourceAttributes":{"verb":"get","group":"` + resourceManager + `","resource":"projects","name":"own"}}`, `"allowed":true`},
		"all projects":  {"accessreviews", `{"resourceAttributes":{"verb":"get","group":"` + resourceManager + `","resource":"projects"}}`, `"allowed":false`},
		"what there is": {"rulesreviews", `{"namespace":"default"}`, `"incomplete":true`},
	} {
		kind := map[string]string{"accessreviews": "SelfSubjectAccessReview", "rulesreviews": "SelfSubjectRulesReview"}[c.request]
		code, answer, err := p.send(t.Context(), reviews+c.request, `{"apiVersion":"authorization.k8s.io/v1","kind":"`+kind+`","spec":`+c.spec+`}`)
		if err != nil || code != http.StatusCreated || !strings.Contains(answer, c.want) {
			t.Errorf("mallory asks about %s, and is answered %d %s, %v", what, code, answer, err)
		}
	}
}
