package plan

import (
	"strings"
	"testing"

	opensearchv1 "github.com/entail-dev/entail/services/internal/api/opensearch/v1"
)

// The verdicts on regular expressions were compared with java.util.regex on three million random expressions.
func TestCheckPatternAcceptsOnlyWhatJavaCompiles(t *testing.T) {
	for text, want := range map[string]bool{
		"logs-*": true, "/logs": true, "[": true, "//": true, `/logs-[0-9]{4}\.[^.]+/`: true, `/(?!\.).*/`: true, "/(?:ab)++(?>c)/": true,
		`/(?:dev|test)-.*-[0-9]+(?:-.*)?/`: true, "/(?:(?:ab){3}c){2}x?/": true,
		"/x-${user.name}-${attr.internal.team}/": true, "/(?i)LOGS/": true,
		"/": false, "/logs-[/": false, "/logs-[[]/": false, "/a{,2}/": false, "/{/": false, "/*a/": false, "/a**/": false, "/(?P<n>a)/": false,
		"/a)/": false, `/a\/`: false, `/\p{Greek}/`: false, "/(?i)*/": false, "/a(?i)*/": false, "/a{1}+?/": false, "/x-${nobody}/": false, "/a{3,1}/": false,
		// Java tries every way to match these, which takes longer than a century for some names.
		"/(a*)*!/": false, "/(?:(?:a*))+!/": false, "/(a|a)*!/": false, "/(?:a?){30}!/": false, "/(?=(a+)+!)/": false, "/a*a*a*a*!/": false,
		"/" + strings.Repeat("a?", 21) + "!/": false, "/" + strings.Repeat("(?:a|a)", 21) + "!/": false, "/(?:a{1,9}){2}/": false,
	} {
		if err := checkPattern(text); (err == nil) != want {
			t.Errorf("%s: got %v, want it accepted: %t", text, err, want)
		}
	}
}

func TestIsQueryAcceptsWhatOpenSearchParses(t *testing.T) {
	for dls, want := range map[string]bool{
		"": true, `{"match_all":{}}`: true, `/* all */ {"match_all":{}} // end`: true, `{"terms":{"dept":[${user.roles}]}}`: true,
		`{"term":{"dept":"${attr.internal.dept}"}}`: true, `{"term":{"url":"http://a/*b*/"}}`: true,
		" ": false, "{broken": false, `{"a":1}`: false, `{"term":{"a":1},"exists":{"field":"a"}}`: false, "{}": false, "[]": false, `"x"`: false, "{match_all:{}}": false, `{"match_all":{},}`: false,
	} {
		if got := isQueryOrEmpty(dls); got != want {
			t.Errorf("%s: got %t, want %t", dls, got, want)
		}
	}
}

func TestCheckPatternValuesNamesField(t *testing.T) {
	role := func(p opensearchv1.IndexPermission) *opensearchv1.OpensearchRole {
		return &opensearchv1.OpensearchRole{Spec: opensearchv1.OpensearchRoleSpec{IndexPermissions: []opensearchv1.IndexPermission{p}}}
	}
	bound := func(s opensearchv1.OpensearchUserRoleBindingSpec) *opensearchv1.OpensearchUserRoleBinding {
		return &opensearchv1.OpensearchUserRoleBinding{Spec: s}
	}
	bad := []string{"ok", "/[/"}
	for field, o := range map[string]opensearchv1.DeclaredObject{
		"indexPermissions[0].indexPatterns":  role(opensearchv1.IndexPermission{IndexPatterns: bad}),
		"indexPermissions[0].allowedActions": role(opensearchv1.IndexPermission{AllowedActions: bad}),
		"indexPermissions[0].maskedFields":   role(opensearchv1.IndexPermission{MaskedFields: []string{"/[/::SHA-1"}}),
		"indexPermissions[1].maskedFields": &opensearchv1.OpensearchRole{Spec: opensearchv1.OpensearchRoleSpec{IndexPermissions: []opensearchv1.IndexPermission{
			{}, {MaskedFields: []string{"a::/(a*)*!/::x"}},
		}}},
		"tenantPermissions[1].allowedActions": &opensearchv1.OpensearchRole{Spec: opensearchv1.OpensearchRoleSpec{TenantPermissions: []opensearchv1.TenantPermission{
			{AllowedActions: []string{"kibana:saved_objects/*/read"}}, {AllowedActions: []string{"indices:data/read/get", "indexes:data/read/get"}},
		}}},
		"indexPermissions[0].dls":             role(opensearchv1.IndexPermission{DLS: "{broken"}),
		"clusterPermissions":                  &opensearchv1.OpensearchRole{Spec: opensearchv1.OpensearchRoleSpec{ClusterPermissions: bad}},
		"tenantPermissions[0].tenantPatterns": &opensearchv1.OpensearchRole{Spec: opensearchv1.OpensearchRoleSpec{TenantPermissions: []opensearchv1.TenantPermission{{TenantPatterns: bad}}}},
		"tenantPermissions[0].allowedActions": &opensearchv1.OpensearchRole{Spec: opensearchv1.OpensearchRoleSpec{TenantPermissions: []opensearchv1.TenantPermission{{AllowedActions: bad}}}},
		"allowedActions":                      &opensearchv1.OpensearchActionGroup{Spec: opensearchv1.OpensearchActionGroupSpec{AllowedActions: bad}},
		"users":                               bound(opensearchv1.OpensearchUserRoleBindingSpec{Users: bad}),
		"backendRoles":                        bound(opensearchv1.OpensearchUserRoleBindingSpec{BackendRoles: bad}),
		"hosts":                               bound(opensearchv1.OpensearchUserRoleBindingSpec{Hosts: bad}),
		"andBackendRoles":                     bound(opensearchv1.OpensearchUserRoleBindingSpec{AndBackendRoles: bad}),
	} {
		if v := CheckPatternValues(o, nil); v == nil || v.Reason != Invalid || !strings.HasPrefix(v.Message, "spec."+field+" ") && !strings.HasPrefix(v.Message, "spec."+field+":") {
			t.Errorf("got %+v, want Invalid for spec.%s", v, field)
		}
	}
	for name, o := range map[string]opensearchv1.DeclaredObject{
		"user":    &opensearchv1.OpensearchUser{Spec: opensearchv1.OpensearchUserSpec{Attributes: map[string]string{"a": strings.Repeat("a", maxContent)}}},
		"role":    role(opensearchv1.IndexPermission{AllowedActions: make([]string, maxContent/ValueCost)}),
		"binding": bound(opensearchv1.OpensearchUserRoleBindingSpec{Roles: make([]string, 100), Users: []string{strings.Repeat("a", maxContent/100)}}),
	} {
		if v := CheckPatternValues(o, nil); v == nil || v.Reason != TooLarge {
			t.Errorf("got %+v for a large %s, want TooLarge", v, name)
		}
	}
	actions := role(opensearchv1.IndexPermission{IndexPatterns: []string{"logs"}, AllowedActions: []string{"read", "cluster:monitor", "*", "rea?", "/rea./", "raed"}})
	if v := CheckPatternValues(actions, map[string]bool{"read": true}); v == nil || v.Reason != ActionGroupMissing || !strings.Contains(v.Message, `"raed"`) {
		t.Errorf("got %+v, want ActionGroupMissing for raed", v)
	}
	for _, groups := range []map[string]bool{nil, {"read": true, "raed": true}} {
		if v := CheckPatternValues(actions, groups); v != nil {
			t.Errorf("got %+v for a role with the action groups %v", v, groups)
		}
	}
}

// Only the compared backend roles decide whether a user needs the verb bind, so a user with more is not written.
func TestCheckPatternValuesRefusesBackendRolesThatAreNotCompared(t *testing.T) {
	user := &opensearchv1.OpensearchUser{}
	user.Spec.BackendRoles = make([]string, maxBackendRoles)
	if v := CheckPatternValues(user, nil); v != nil {
		t.Errorf("got %v for %d backend roles, want none", v, maxBackendRoles)
	}
	user.Spec.BackendRoles = append(user.Spec.BackendRoles, "admins")
	if v := CheckPatternValues(user, nil); v == nil || v.Reason != TooLarge {
		t.Errorf("got %v for one more, want %s", v, TooLarge)
	}
}
