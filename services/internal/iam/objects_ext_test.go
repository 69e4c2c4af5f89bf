package iam_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/iam/world"
)

func TestEffectivePermissions(t *testing.T) {
	role := func(namespace, name string, permissions []string, inherited ...string) *iamv1alpha1.Role {
		r := &iamv1alpha1.Role{}
		r.Namespace, r.Name, r.Spec.IncludedPermissions = namespace, name, permissions
		for _, ref := range inherited {
			ns, n, _ := strings.Cut(ref, "/")
			r.Spec.InheritedRoles = append(r.Spec.InheritedRoles, iamv1alpha1.ScopedRoleReference{Namespace: ns, Name: n})
		}
		return r
	}
	a := role("one", "a", []string{"a/trees.get"}, "/b", "two/b", "/gone")
	trees := &iamv1alpha1.ProtectedResource{}
	trees.Spec.ServiceRef.Name, trees.Spec.Kind, trees.Spec.Plural, trees.Spec.Permissions = "a", "Tree", "trees", []string{"get", "list", "create"}
	w := &world.World{Resources: []*iamv1alpha1.ProtectedResource{trees}}
	w.Roles = []*iamv1alpha1.Role{
		a, role("one", "b", []string{"a/trees.list", "a/trees.fell"}, "/a"), role("two", "b", []string{"a/trees.create"}, "/b", "/c"), role("one", "c", []string{"x"}),
	}
	got := objects(w).EffectivePermissions(a)
	for what, pair := range map[string][2][]string{
		"all":     {got.All, {"a/trees.create", "a/trees.fell", "a/trees.get", "a/trees.list"}},
		"unknown": {got.Unknown, {"a/trees.fell"}},
		"missing": {got.Missing, {"one/gone", "two/c"}},
	} {
		if !slices.Equal(pair[0], pair[1]) {
			t.Errorf("%s are %v, want %v", what, pair[0], pair[1])
		}
	}
}

// The owner of a namespace can list any number of unknown permissions in roles, and any number of roles can inherit
// them.
func TestUnregisteredPermissionsAreBounded(t *testing.T) {
	roles := map[string]*iamv1alpha1.Role{}
	last := ""
	role := func(name string, permissions ...string) {
		r := &iamv1alpha1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		r.Spec.IncludedPermissions = permissions
		if last != "" {
			r.Spec.InheritedRoles = []iamv1alpha1.ScopedRoleReference{{Name: last}, {Name: "no-" + name + strings.Repeat("x", 500)}}
		}
		last, roles[name] = name, r
	}
	for i := range 50 {
		var names []string
		for j := range 50 {
			names = append(names, fmt.Sprintf("a.example/%s.%d-%d", strings.Repeat("-", 500*(j%2)), i, j))
		}
		role(fmt.Sprint("heir-", i), append(names, "a.example/widgets.get")...)
	}
	for i := range 150 {
		role(fmt.Sprint("later-", i))
	}
	widget := &iamv1alpha1.ProtectedResource{}
	widget.Spec.ServiceRef.Name, widget.Spec.Kind, widget.Spec.Plural, widget.Spec.Permissions = "a.example", "Widget", "widgets", []string{"get"}
	o := &iam.DeclaredObjects{
		Registry: iam.NewRegistry([]*iamv1alpha1.ProtectedResource{widget}), Inheritance: new(iam.InheritanceCache),
		Role: func(_, name string) *iamv1alpha1.Role { return roles[name] },
	}
	gives := o.EffectivePermissions(roles[last])
	if len(gives.Missing) != 100 || len(gives.Unknown) != 100 || len(gives.All) != 101 || !slices.Contains(gives.All, "a.example/widgets.get") {
		t.Errorf("got %d permissions, %d unregistered, %d missing roles", len(gives.All), len(gives.Unknown), len(gives.Missing))
	}
	if slices.ContainsFunc(slices.Concat(gives.Missing, gives.All), func(name string) bool { return len(name) > 256 }) {
		t.Error("names longer than 256 bytes are kept")
	}
	// A permission takes effect when it is registered later.
	gadget := &iamv1alpha1.ProtectedResource{}
	gadget.Name = "gadgets"
	gadget.Spec.ServiceRef.Name, gadget.Spec.Kind, gadget.Spec.Plural, gadget.Spec.Permissions = "a.example", "Gadget", "zz", []string{"get"}
	roles["heir-0"].Spec.IncludedPermissions = append(roles["heir-0"].Spec.IncludedPermissions, "a.example/zz.get")
	later := *o
	o.Inheritance = new(iam.InheritanceCache)
	if slices.Contains(o.EffectivePermissions(roles[last]).All, "a.example/zz.get") {
		t.Error("an unregistered permission beyond the limit is kept")
	}
	later.Registry, later.Inheritance = iam.NewRegistry([]*iamv1alpha1.ProtectedResource{widget, gadget}), o.Inheritance
	if !slices.Contains(later.EffectivePermissions(roles[last]).All, "a.example/zz.get") {
		t.Error("a permission that is registered later is not given")
	}
}

func TestResolveSubjectAndInvalidTargetReason(t *testing.T) {
	w := world.NewRandom(7)
	u := &iamv1alpha1.User{}
	u.Name, u.UID = "u", "1"
	g := &iamv1alpha1.Group{}
	g.Namespace, g.Name, g.UID = "ns", "g", "2"
	w.Users, w.Groups, w.Accounts = append(w.Users, u), append(w.Groups, g), nil
	o := objects(w)
	for reason, subjects := range map[string][]iamv1alpha1.Subject{
		"": {
			{Kind: "User", Name: "u", UID: "1"},
			{Kind: "Group", Name: "g", Namespace: "ns", UID: "2"},
			{Kind: "Group", Name: "system:x"},
			{Kind: "Group", Name: "oidc:x", UID: "whatever"},
			{Kind: "ServiceAccount", Name: "s", Namespace: "core", UID: "3"},
		},
		iamv1alpha1.UIDMissing:        {{Kind: "User", Name: "u"}, {Kind: "Group", Name: "g", Namespace: "ns"}, {Kind: "ServiceAccount", Name: "s"}},
		iamv1alpha1.UIDMismatch:       {{Kind: "User", Name: "u", UID: "2"}, {Kind: "Group", Name: "g", Namespace: "ns", UID: "1"}},
		iamv1alpha1.NotFound:          {{Kind: "User", Name: "v", UID: "1"}, {Kind: "Group", Name: "g", Namespace: "no", UID: "2"}, {Kind: "ServiceAccount", Name: "s", UID: "3"}},
		iamv1alpha1.NamespaceMissing:  {{Kind: "Group", Name: "g", UID: "2"}},
		iamv1alpha1.KindNotRecognized: {{Kind: "Robot", Name: "r", UID: "1"}},
	} {
		for _, s := range subjects {
			if subject, got := o.ResolveSubject(s); got != reason || (subject == "") != (reason != "") {
				t.Errorf("%+v is %q, %q; want %q", s, subject, got, reason)
			}
		}
	}
	for first, want := range map[iamv1alpha1.Member]string{
		{}: iamv1alpha1.UIDMissing, {Name: "u", UID: "1"}: "", {Name: "u", UID: "0"}: iamv1alpha1.UIDMismatch, {Name: "v", UID: "1"}: iamv1alpha1.UIDMissing,
	} {
		m := &iamv1alpha1.GroupMembership{}
		if m.Spec.UserRef.Name = "u"; first.Name != "" {
			m.Status.User = &first
		}
		if got, reason := o.ResolveMember(m); reason != want || (got == iam.UserSubject("u")) != (want == "") {
			t.Errorf("member recorded as %+v: got %q, %q", first, got, reason)
		}
	}
	u.Status.State = iamv1alpha1.Inactive
	if subject, reason := o.ResolveSubject(iamv1alpha1.Subject{Kind: "User", Name: "u", UID: "1"}); subject != "" || reason != "" {
		t.Errorf("inactive user: got %q, %q", subject, reason)
	}
}

func TestInvalidTargetReasonUsesPublishedReasons(t *testing.T) {
	w := &world.World{}
	for _, kind := range []string{"Tree", "Star", "Ghost"} {
		p := &iamv1alpha1.ProtectedResource{}
		p.Name, p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural = kind, "a", kind, strings.ToLower(kind)+"s"
		w.Resources = append(w.Resources, p)
	}
	w.Targets = []*world.TargetObject{{Type: "a/Tree"}}
	w.Targets[0].Namespace, w.Targets[0].Name, w.Targets[0].UID = "ns", "oak", "1"
	o := objects(w)
	o.Scope = func(typ string) (namespaced, followed bool) { return typ == "a/Tree", typ != "a/Ghost" }
	for want, refs := range map[string][]iamv1alpha1.ResourceReference{
		"":                                  {{Kind: "Tree", Namespace: "ns", Name: "oak", UID: "1"}},
		iamv1alpha1.TargetUIDMismatch:       {{Kind: "Tree", Namespace: "ns", Name: "oak", UID: "2"}},
		iamv1alpha1.TargetNotFound:          {{Kind: "Tree", Namespace: "ns", Name: "elm"}, {Kind: "Star", Name: "sun"}, {Kind: "Star", Namespace: "ns", Name: "sun"}},
		iamv1alpha1.TargetNamespaceMissing:  {{Kind: "Tree", Name: "oak", UID: "1"}},
		iamv1alpha1.TargetKindNotRecognized: {{Kind: "Ghost", Name: "g"}, {Kind: "Ghost", Namespace: "ns", Name: "g"}},
		iamv1alpha1.ValidationFailed:        {{Kind: "None", Name: "n"}},
	} {
		for _, ref := range refs {
			ref.APIGroup = "a"
			b := &iamv1alpha1.PolicyBinding{}
			b.Spec.ResourceSelector.ResourceRef = &ref
			if got := o.InvalidTargetReason(b); got != want {
				t.Errorf("%+v: got reason %q, want %q", ref, got, want)
			}
		}
	}
}
