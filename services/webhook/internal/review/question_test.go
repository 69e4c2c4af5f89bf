package review

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/iam"
)

// everything registers kinds and makes a role with all of their permissions.
func everything(x *authz.Index) {
	role := &iamv1alpha1.Role{}
	register := func(group, kind, plural string, permissions []string, parents ...iamv1alpha1.ParentResourceRef) {
		p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: group + plural}}
		p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.Permissions, p.Spec.ParentResources = group, kind, plural, permissions, parents
		x.SetProtectedResource(p.Name, p)
		for _, verb := range permissions {
			separator := "."
			if strings.Contains(verb, ".") {
				separator = "/"
			}
			role.Spec.IncludedPermissions = append(role.Spec.IncludedPermissions, iam.APIGroupName(group)+"/"+plural+separator+verb)
		}
	}
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}
	org := iamv1alpha1.ParentResourceRef{APIGroup: "resourcemanager.miloapis.com", Kind: "Organization"}
	prj := iamv1alpha1.ParentResourceRef{APIGroup: org.APIGroup, Kind: "Project"}
	ns := iamv1alpha1.ParentResourceRef{APIGroup: "core.miloapis.com", Kind: "Namespace"}
	register(org.APIGroup, "Organization", "organizations", all)
	register(org.APIGroup, "Project", "projects", all, org)
	register("core.miloapis.com", "Namespace", "namespaces", all)
	register("iam.miloapis.com", "Group", "groups", all, org)
	register("iam.miloapis.com", "User", "users", all)
	register("identity.miloapis.com", "Session", "sessions", all, iamv1alpha1.ParentResourceRef{APIGroup: "iam.miloapis.com", Kind: "User"})
	register("core.miloapis.com", "Pod", "pods", append(all, "exec.create", "status.update"), ns, prj)
	register("compute.miloapis.com", "Workload", "workloads", all, prj)
	register("a.example", "Widget", "widgets", append(all, "scale.create"))
	x.SetRole("n", "everything", role)
}

// worldOf returns an index with the organizations acme and evil, a project of the same name in each, and some users.
func worldOf(bindings ...iamv1alpha1.PolicyBinding) *authz.Index {
	x := authz.New(func(typ string) bool { return typ == "a.example/Widget" || typ == namespace })
	everything(x)
	for _, user := range []string{"alice", "a b:c#d*", "user-abc"} {
		x.SetUser(user, &iamv1alpha1.User{ObjectMeta: metav1.ObjectMeta{UID: "uid-of-user"}})
	}
	for _, name := range []string{"acme", "evil"} {
		x.SetTarget(organization, "", name, &iam.BindingTarget{UID: "u"})
		x.SetTarget(project, "", name, &iam.BindingTarget{UID: "u", Owners: []iam.Owner{{Type: organization, Name: name, UID: "u"}}})
	}
	x.SetTarget("iam.miloapis.com/User", "", "user-abc", &iam.BindingTarget{UID: "u"})
	for i, b := range bindings {
		b.Spec.RoleRef.Name = "everything"
		x.SetBinding("n", fmt.Sprint("b", i), &b)
	}
	return x
}

func onObject(group, kind, name string) (b iamv1alpha1.PolicyBinding) {
	b.Spec.Subjects = []iamv1alpha1.Subject{{Kind: "User", Name: "alice", UID: "uid-of-user"}}
	b.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: group, Kind: kind, Name: name, UID: "u"}
	return b
}

func onKind(group, kind string, to ...iamv1alpha1.Subject) iamv1alpha1.PolicyBinding {
	b := onObject(group, kind, "")
	if b.Spec.ResourceSelector.ResourceRef = nil; len(to) > 0 {
		b.Spec.Subjects = to
	}
	b.Spec.ResourceSelector.ResourceKind = &iamv1alpha1.ResourceKind{APIGroup: group, Kind: kind}
	return b
}

// row is a review with the expected answer.
type row struct {
	rules    TrustRules
	bindings []iamv1alpha1.PolicyBinding
	review   Review
	project  string
	allowed  bool
	// why is a part of the expected reason for no opinion.
	why string
}

func by(user string, groups ...string) Review {
	return Review{UID: user, User: "name-of-" + user, Groups: groups}
}

func (r Review) to(verb, group, resource, name string) Review {
	r.Resource = &ResourceAttributes{Verb: verb, Group: group, Resource: resource, Name: name}
	return r
}

func (r Review) in(namespace string) Review { r.Resource.Namespace = namespace; return r }

func (r Review) sub(resource string) Review { r.Resource.Subresource = resource; return r }

func (r Review) of(group, kind, name string) Review {
	r.Extra = map[string][]string{parentGroup: {group}, parentType: {kind}, parentName: {name}}
	return r
}

const milo = "resourcemanager.miloapis.com"

func decides(t *testing.T, rows map[string]row) {
	t.Helper()
	for what, c := range rows {
		x, rules := worldOf(c.bindings...), NewTrustRules(c.rules)
		request, err := c.review.ToAccessRequest(rules, c.project)
		allowed := false
		if err == nil {
			var q authz.Query
			if q, err = request.ToQuery(rules, x.Registry()); err == nil {
				if _, allowed = x.Decide(q); !allowed {
					err = c.review.UnidentifiedUserErr(rules)
				}
			}
		}
		why := ""
		if err != nil {
			why = err.Error()
		}
		if allowed != c.allowed || !strings.Contains(why, c.why) || c.why == "" && why != "" {
			t.Errorf("%s: %v, %q; want %v, %q", what, allowed, why, c.allowed, c.why)
		}
	}
}

func TestToAccessRequestSubject(t *testing.T) {
	all := []iamv1alpha1.PolicyBinding{onKind(milo, "Project")}
	to := func(s iamv1alpha1.Subject) []iamv1alpha1.PolicyBinding {
		return []iamv1alpha1.PolicyBinding{onKind(milo, "Project", s)}
	}
	list := func(r Review) Review { return r.to("list", milo, "projects", "") }
	named := list(Review{User: "alice", Groups: []string{"system:authenticated"}})
	odd := "a b:c#d*"
	decides(t, map[string]row{
		"by UID":                          {bindings: all, review: list(by("alice")), allowed: true},
		"by name, strictly":               {rules: TrustRules{Subject: ByUID}, bindings: all, review: named, why: "user UID is required"},
		"by name":                         {rules: TrustRules{Subject: ByUIDOrName}, bindings: all, review: named, allowed: true},
		"a name beside a UID":             {rules: TrustRules{Subject: ByUIDOrName}, bindings: all, review: list(Review{User: "alice", UID: "bob"})},
		"neither":                         {rules: TrustRules{Subject: ByUIDOrName}, bindings: to(iamv1alpha1.Subject{Kind: "Group", Name: "system:authenticated"}), review: list(Review{Groups: []string{"system:authenticated"}}), why: "user UID is required"},
		"another":                         {bindings: all, review: list(by("bob"))},
		"an odd name is a no":             {bindings: all, review: list(by(odd))},
		"an odd name":                     {bindings: to(iamv1alpha1.Subject{Kind: "User", Name: odd, UID: "uid-of-user"}), review: list(by(odd)), allowed: true},
		"a User named as the system":      {rules: TrustRules{Subject: ByUIDOrName}, bindings: all, review: list(Review{User: "system:alice"})},
		"a UID for one of the system":     {bindings: all, review: list(Review{User: "system:node:x", UID: "alice"})},
		"an account":                      {bindings: to(iamv1alpha1.Subject{Kind: "ServiceAccount", Namespace: "one", Name: "bot", UID: "7"}), review: list(Review{User: "system:serviceaccount:one:bot", UID: "7"}), allowed: true},
		"an account by its name":          {rules: TrustRules{Subject: ByUIDOrName}, bindings: to(iamv1alpha1.Subject{Kind: "ServiceAccount", Namespace: "one", Name: "bot", UID: "7"}), review: list(Review{User: "system:serviceaccount:one:bot"})},
		"a User with the UID of one":      {bindings: to(iamv1alpha1.Subject{Kind: "ServiceAccount", Namespace: "one", Name: "bot", UID: "alice"}), review: list(by("alice"))},
		"a group of the token":            {bindings: to(iamv1alpha1.Subject{Kind: "Group", Name: "oidc:sales"}), review: list(by("bob", "oidc:sales")), allowed: true},
		"a group that is called as a UID": {bindings: to(iamv1alpha1.Subject{Kind: "Group", Namespace: "n", Name: "admins", UID: "g-1"}), review: list(by("bob", "g-1", "admins", "n/admins", "group:g-1#member"))},
		"a group of the system":           {bindings: to(iamv1alpha1.Subject{Kind: "Group", Name: "system:nodes"}), review: list(Review{User: "system:node:x", Groups: []string{"system:nodes"}}), allowed: true},
		"another group of one of it":      {bindings: to(iamv1alpha1.Subject{Kind: "Group", Name: "oidc:sales"}), review: list(Review{User: "system:node:x", Groups: []string{"oidc:sales"}})},
		"anybody":                         {bindings: to(iamv1alpha1.Subject{Kind: "Group", Name: "system:unauthenticated"}), review: list(Review{User: "system:anonymous", Groups: []string{"system:unauthenticated"}})},
		"anybody where that is wanted":    {rules: TrustRules{Anonymous: true}, bindings: to(iamv1alpha1.Subject{Kind: "Group", Name: "system:unauthenticated"}), review: list(Review{User: "system:anonymous", Groups: []string{"system:unauthenticated"}}), allowed: true},
		"the masters":                     {bindings: all, review: list(by("alice", "system:masters")), why: "system:masters"},
		"more groups than OpenFGA takes":  {bindings: all, review: list(by("alice", strings.Split(strings.Repeat("g:x,", 1000), ",")...)), allowed: true},
	})
}

func TestToQueryPermission(t *testing.T) {
	widgets := []iamv1alpha1.PolicyBinding{onKind("a.example", "Widget")}
	one := onObject("a.example", "Widget", "w")
	one.Spec.ResourceSelector.ResourceRef.Namespace = "one"
	w, pods := []iamv1alpha1.PolicyBinding{one}, []iamv1alpha1.PolicyBinding{onKind("", "Pod")}
	in := []iamv1alpha1.PolicyBinding{onObject("", "Namespace", "one")}
	a := by("alice")
	selected := a.to("deletecollection", "a.example", "widgets", "").in("one")
	selected.Resource.FieldSelector.Requirements = []selectorRequirement{{"metadata.name", "In", []string{"w"}}}
	path := a
	path.NonResource = &NonResourceAttributes{Path: "/metrics", Verb: "get"}
	decides(t, map[string]row{
		"a kind that no ProtectedResource registers": {bindings: widgets, review: a.to("get", "foo.com", "bars", "x"), why: "no ProtectedResource registers permission 'foo.com/bars.get'"},
		"a verb that nobody registers":               {bindings: widgets, review: a.to("use", "a.example", "widgets", "w"), why: "not protected by Entail"},
		"everything":                                 {bindings: widgets, review: a.to("*", "*", "*", ""), why: "not protected by Entail"},
		"every verb":                                 {bindings: widgets, review: a.to("*", "a.example", "widgets", ""), why: "not protected by Entail"},
		"a path":                                     {bindings: widgets, review: path, why: "/metrics"},
		"an object":                                  {bindings: w, review: a.to("get", "a.example", "widgets", "w").in("one"), allowed: true},
		"it in another namespace":                    {bindings: w, review: a.to("get", "a.example", "widgets", "w").in("two")},
		"all, by who has one":                        {bindings: w, review: a.to("list", "a.example", "widgets", "").in("one")},
		"one of a list":                              {bindings: w, review: a.to("list", "a.example", "widgets", "w").in("one"), allowed: true},
		"to watch one":                               {bindings: w, review: a.to("watch", "a.example", "widgets", "w").in("one"), allowed: true},
		"to create one with a name":                  {bindings: w, review: a.to("create", "a.example", "widgets", "w").in("one")},
		"to create by the kind":                      {bindings: widgets, review: a.to("create", "a.example", "widgets", "w").in("one"), allowed: true},
		"to delete a collection":                     {bindings: w, review: a.to("deletecollection", "a.example", "widgets", "").in("one")},
		"to delete a collection of one":              {bindings: w, review: selected, allowed: true},
		"a subresource of its own":                   {bindings: pods, review: a.to("create", "", "pods", "p").in("one").sub("exec"), allowed: true},
		"a subresource of an object":                 {bindings: w, review: a.to("create", "a.example", "widgets", "w").in("one").sub("scale"), allowed: true},
		"a subresource of another":                   {bindings: w, review: a.to("create", "a.example", "widgets", "v").in("one").sub("scale")},
		"another subresource":                        {bindings: pods, review: a.to("create", "", "pods", "p").in("one").sub("attach"), why: "not protected by Entail"},
		"a subresource in a verb":                    {bindings: pods, review: a.to("exec.create", "", "pods", "p").in("one"), why: "not protected by Entail"},
		"a subresource in a plural":                  {bindings: pods, review: a.to("create", "", "pods/exec", "p").in("one"), why: "not protected by Entail"},
		"the core group":                             {bindings: pods, review: a.to("get", "", "pods", "p").in("one"), allowed: true},
		"in a namespace":                             {bindings: in, review: a.to("list", "", "pods", "").in("one"), allowed: true},
		"an object in a namespace":                   {bindings: in, review: a.to("get", "", "pods", "p").in("one"), allowed: true},
		"in another namespace":                       {bindings: in, review: a.to("list", "", "pods", "").in("two")},
		"in all namespaces":                          {bindings: in, review: a.to("list", "", "pods", "")},
		"a namespace, which is in itself":            {bindings: in, review: a.to("get", "", "namespaces", "one").in("one"), allowed: true},
		"a namespace by one in it":                   {bindings: in, review: a.to("get", "", "namespaces", "two").in("one")},
		"an object with an odd name":                 {bindings: w, review: a.to("get", "a.example", "widgets", "a:b#c *%"+strings.Repeat("x", 300)).in("one")},
	})
}

func TestToQueryParent(t *testing.T) {
	trust := TrustRules{TrustParents: true}
	acme, evil := []iamv1alpha1.PolicyBinding{onObject(milo, "Organization", "acme")}, []iamv1alpha1.PolicyBinding{onObject(milo, "Project", "evil")}
	prj := []iamv1alpha1.PolicyBinding{onObject(milo, "Project", "acme")}
	user := []iamv1alpha1.PolicyBinding{onObject("iam.miloapis.com", "User", "user-abc")}
	a := by("alice")
	list, get := a.to("list", "compute.miloapis.com", "workloads", ""), a.to("get", "compute.miloapis.com", "workloads", "wkld-123")
	twice := func(extra string, values ...string) Review {
		r := get.of(milo, "Project", "acme")
		r.Extra[extra] = values
		return r
	}
	decides(t, map[string]row{
		"stored":                                 {bindings: acme, review: a.to("get", milo, "projects", "acme"), allowed: true},
		"stored, whatever is said":               {rules: trust, bindings: acme, review: a.to("get", milo, "projects", "evil").of(milo, "Organization", "acme")},
		"a new project is not of who says so":    {rules: trust, bindings: acme, review: a.to("get", milo, "projects", "just-made").of(milo, "Organization", "acme")},
		"said of an object, and not believed":    {bindings: prj, review: get.of(milo, "Project", "acme")},
		"said of an object":                      {rules: trust, bindings: prj, review: get.of(milo, "Project", "acme"), allowed: true},
		"said twice":                             {rules: trust, bindings: prj, review: twice(parentName, "evil", "acme")},
		"said first, and otherwise then":         {rules: trust, bindings: prj, review: twice(parentName, "acme", "evil")},
		"said of two kinds":                      {rules: trust, bindings: prj, review: twice(parentType, "Project", "Organization")},
		"said of two groups":                     {rules: trust, bindings: prj, review: twice(parentGroup, milo, "foo.com")},
		"said of all, and not believed":          {bindings: prj, review: list.of(milo, "Project", "acme")},
		"said of all":                            {rules: trust, bindings: prj, review: list.of(milo, "Project", "acme"), allowed: true},
		"of another project":                     {rules: trust, bindings: prj, review: list.of(milo, "Project", "evil")},
		"of no ancestor":                         {rules: trust, bindings: user, review: get.of("iam.miloapis.com", "User", "user-abc")},
		"of something that nobody registers":     {rules: trust, bindings: prj, review: get.of("foo.com", "Bar", "acme")},
		"of a user":                              {rules: trust, bindings: user, review: a.to("delete", "identity.miloapis.com", "sessions", "session-abc").of("iam.miloapis.com", "User", "user-abc"), allowed: true},
		"a kind counts wherever it is of":        {rules: trust, bindings: []iamv1alpha1.PolicyBinding{onKind("compute.miloapis.com", "Workload")}, review: list.of(milo, "Project", "evil"), allowed: true},
		"to create, of an organization":          {rules: trust, bindings: acme, review: a.to("create", milo, "projects", "x").of(milo, "Organization", "acme"), allowed: true},
		"to list, of an organization":            {rules: trust, bindings: acme, review: a.to("list", milo, "projects", "").of(milo, "Organization", "acme"), allowed: true},
		"in the namespace of an organization":    {rules: trust, bindings: acme, review: a.to("list", "iam.miloapis.com", "groups", "").in("organization-acme").of(milo, "Organization", "acme"), allowed: true},
		"in the namespace of another":            {rules: trust, bindings: acme, review: a.to("list", "iam.miloapis.com", "groups", "").in("organization-evil").of(milo, "Organization", "acme"), why: "namespace mismatch"},
		"in all namespaces, of an organization":  {rules: trust, bindings: acme, review: a.to("list", "iam.miloapis.com", "groups", "").of(milo, "Organization", "acme"), why: "cross-namespace"},
		"perhaps in all namespaces":              {rules: trust, bindings: acme, review: list.of(milo, "Organization", "acme")},
		"of an organization far above":           {rules: trust, bindings: acme, review: get.in("organization-acme").of(milo, "Organization", "acme"), allowed: true},
		"in a namespace, not that which it says": {rules: trust, bindings: []iamv1alpha1.PolicyBinding{onObject("", "Namespace", "one")}, review: a.to("get", "", "pods", "p").in("two").of("", "Namespace", "one")},
		"at the project":                         {bindings: prj, project: "acme", review: get, allowed: true},
		"at the project, by its organization":    {bindings: acme, project: "acme", review: list, allowed: true},
		"at another project":                     {bindings: prj, project: "evil", review: get},
		"at a project that is not":               {bindings: []iamv1alpha1.PolicyBinding{onKind(milo, "Project")}, project: "nowhere", review: get},
		"at one, whatever is said":               {rules: trust, bindings: evil, project: "acme", review: get.of(milo, "Project", "evil")},
		"at one, what no project can hold":       {bindings: append(prj, onKind("a.example", "Widget")), project: "acme", review: a.to("get", "a.example", "widgets", "w")},
		"at one, by the kind":                    {bindings: []iamv1alpha1.PolicyBinding{onKind("compute.miloapis.com", "Workload")}, project: "acme", review: get},
	})
}

func TestScopeLabelValues(t *testing.T) {
	for want, r := range map[string]AccessRequest{
		"project": {Project: "x"}, "organization": {Parent: authz.Scope{Type: organization}}, "cluster": {Parent: authz.Scope{Type: "evil.example/Thing"}},
	} {
		if got := r.ScopeLabel(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
