package review

import (
	"errors"
	"fmt"

	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/iam"
)

// The extras by which an API server says what a request is of.
const (
	parentGroup = "iam.miloapis.com/parent-api-group"
	parentType  = "iam.miloapis.com/parent-type"
	parentName  = "iam.miloapis.com/parent-name"
)

// organizationNamespace is what the namespaces of organizations begin with.
const organizationNamespace = "organization-"

var errAllNamespaces = errors.New("cross-namespace queries not allowed for organization-scoped requests")

// parent is what a review says that its object is of; nothing unless each part is said once.
func (r *Review) parent() decide.Place {
	group, kind, name := r.Extra[parentGroup], r.Extra[parentType], r.Extra[parentName]
	if len(group) != 1 || len(kind) != 1 || len(name) != 1 || kind[0] == "" || name[0] == "" {
		return decide.Place{}
	}
	return decide.Place{Type: iam.Type(group[0], kind[0]), Ref: decide.Ref{Name: name[0]}}
}

// Scope is what a request is of, as metrics tell it: one of a few words, whatever it says.
func (r *Request) Scope() string {
	switch {
	case r.Project != "" || r.Parent.Type == project:
		return "project"
	case r.Parent.Type == organization:
		return "organization"
	}
	return "cluster"
}

// guard keeps what is of an organization to its namespace. Elsewhere it says nothing.
func (r *Request) guard(rules *Rules, typ string) error {
	if r.Parent.Type != organization {
		return nil
	}
	switch within := organizationNamespace + r.Parent.Name; {
	case r.Namespace != "" && r.Namespace != within && !rules.isGlobal(typ):
		return fmt.Errorf("namespace mismatch: request namespace '%s' does not match organization namespace '%s'", r.Namespace, within)
	case r.Namespace == "" && rules.InNamespaces(typ):
		return errAllNamespaces
	}
	return nil
}

// isCredible says whether what a request is of may count. The namespace is what the request says that it is. Of a kind that is
// followed every object is known, if only a moment later, with what it is of. And an organization has none of what may be in
// namespaces but where the request is for its own.
func (r *Request) isCredible(rules *Rules, q *decide.Question) bool {
	followed := rules.follow(q.Type)
	switch {
	case r.Parent.Name == "" || r.Parent.Type == namespace || followed && q.Name != "":
		return false
	case r.Parent.Type == organization && !followed:
		return r.Namespace != ""
	}
	return true
}
