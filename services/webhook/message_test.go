package webhook

import (
	"testing"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

// A request of a namespace, as the API server puts it, is about an object that is in none.
func TestOnlyObjectsThatCanBeInANamespaceAreLookedForThere(t *testing.T) {
	x, s := decide.New(nil), &server{rules: review.NewRules(review.Rules{})}
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
		"widgets": {"a.example", "foo", false}, // Nobody says where these are.
	} {
		q := s.question(x, decide.Subject{}, "get", &accessv1.Resource{ApiGroup: c.group, Resource: plural, Namespace: "foo", Name: "foo"})
		if q.Permission == "" || q.Namespace != c.want || q.Name != "foo" {
			t.Errorf("%s are asked about as %+v", plural, q)
		}
		if s.lacksNamespace(q) {
			t.Errorf("%s are asked about in no namespace", plural)
		}
		q = s.question(x, decide.Subject{}, "get", &accessv1.Resource{ApiGroup: c.group, Resource: plural, Name: "foo"})
		if got := s.lacksNamespace(q); got != c.lacks {
			t.Errorf("%s in no namespace lack one: %v", plural, got)
		}
		q = s.question(x, decide.Subject{}, "get", &accessv1.Resource{ApiGroup: c.group, Resource: plural, Name: "foo", Project: "web"})
		if s.lacksNamespace(q) {
			t.Errorf("%s at the endpoint of a project lack a namespace", plural)
		}
	}
}
