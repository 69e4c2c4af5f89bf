package webhook

import (
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/seeds"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

// TestNamespaceOfClusterScopedRequestIsIgnored sends requests with a namespace for cluster-scoped objects, as
// the API server does for a Namespace.
func TestNamespaceOfClusterScopedRequestIsIgnored(t *testing.T) {
	x, s := authz.New(nil), &accessServer{rules: review.NewTrustRules(review.TrustRules{})}
	for name, spec := range map[string]iamv1alpha1.ProtectedResourceSpec{
		"namespace": {Kind: "Namespace", Plural: "namespaces"},
		"project":   {ServiceRef: iamv1alpha1.ServiceReference{Name: "resourcemanager.miloapis.com"}, Kind: "Project", Plural: "projects"},
		"group":     {ServiceRef: iamv1alpha1.ServiceReference{Name: "iam.miloapis.com"}, Kind: "Group", Plural: "groups"},
		"widget":    {ServiceRef: iamv1alpha1.ServiceReference{Name: "a.example"}, Kind: "Widget", Plural: "widgets"},
	} {
		p := &iamv1alpha1.ProtectedResource{Spec: spec}
		p.Name, p.Spec.Permissions = name, []string{"get"}
		x.SetProtectedResource(name, p)
	}
	for plural, c := range map[string]struct {
		group, want string
		lacks       bool
	}{
		"namespaces": {group: ""}, "projects": {group: "resourcemanager.miloapis.com"}, "groups": {"iam.miloapis.com", "foo", true},
		"widgets": {"a.example", "foo", false}, // The scope of this kind is unknown.
	} {
		q := s.queryFromRequest(x, authz.Subject{}, "get", &accessv1.Resource{ApiGroup: c.group, Resource: plural, Namespace: "foo", Name: "foo"})
		if q.Permission == "" || q.Namespace != c.want || q.Name != "foo" {
			t.Errorf("%s: got query %+v", plural, q)
		}
		if s.lacksNamespace(q) {
			t.Errorf("%s: got needsNamespace true", plural)
		}
		q = s.queryFromRequest(x, authz.Subject{}, "get", &accessv1.Resource{ApiGroup: c.group, Resource: plural, Name: "foo"})
		if got := s.lacksNamespace(q); got != c.lacks {
			t.Errorf("%s without a namespace: got needsNamespace %v", plural, got)
		}
		q = s.queryFromRequest(x, authz.Subject{}, "get", &accessv1.Resource{ApiGroup: c.group, Resource: plural, Name: "foo", Project: "web"})
		if s.lacksNamespace(q) {
			t.Errorf("%s at the endpoint of a project: got needsNamespace true", plural)
		}
	}
}

// TestPageKeysSortLikeLists verifies that page keys sort as the list does. Otherwise pages would omit or
// repeat rows.
func TestPageKeysSortLikeLists(t *testing.T) {
	var refs []authz.Ref
	for _, namespace := range []string{"", "a", "a-b", "a.b", "b"} {
		for _, name := range []string{"a", "a-b", "a:b", "ab", "~"} {
			refs = append(refs, authz.Ref{Namespace: namespace, Name: name})
		}
	}
	r := rand.New(rand.NewPCG(seeds.FirstSeed(t), 1))
	ref := func() authz.Ref { return refs[r.IntN(len(refs))] }
	principal := func() authz.Principal {
		sorts := []authz.PrincipalKind{authz.User, authz.ServiceAccount, authz.CoreServiceAccount, authz.Group, authz.TokenGroup}
		return authz.Principal{Kind: sorts[r.IntN(len(sorts))], Ref: ref(), UID: []string{"", "1", "10", "2"}[r.IntN(4)]}
	}
	right := func() (right authz.HeldRole) {
		right.Proof = authz.Proof{Role: ref(), Principal: principal()}
		if right.Proof.At = (authz.Scope{Type: []string{"a/B", "a.b/C", "a/Bc"}[r.IntN(3)], Ref: ref()}); r.IntN(2) == 0 {
			right.Proof.At.Ref, right.Proof.At.All = authz.Ref{}, true
		}
		return right
	}
	for range 100_000 {
		a, b := right(), right()
		if r.IntN(2) == 0 {
			b.Proof.At = a.Proof.At
		}
		if r.IntN(2) == 0 {
			b.Proof.Role = a.Proof.Role
		}
		if got, want := strings.Compare(rightKey(a), rightKey(b)), cmp.Or(a.Proof.At.Compare(b.Proof.At), a.Proof.Role.Compare(b.Proof.Role), a.Proof.Principal.Compare(b.Proof.Principal)); got != want {
			t.Fatalf("comparison of %+v and %+v: got %d, want %d", a, b, got, want)
		}
		p, q := authz.AllowedPrincipal{Principal: a.Proof.Principal}, authz.AllowedPrincipal{Principal: b.Proof.Principal}
		if got, want := strings.Compare(holderKey(p), holderKey(q)), p.Principal.Compare(q.Principal); got != want {
			t.Fatalf("comparison of %+v and %+v: got %d, want %d", p, q, got, want)
		}
	}
}
