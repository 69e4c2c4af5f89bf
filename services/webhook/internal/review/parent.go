package review

import (
	"errors"
	"fmt"

	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/iam"
)

// Extras by which an API server names the parent of an object.
const (
	parentGroup = "iam.miloapis.com/parent-api-group"
	parentType  = "iam.miloapis.com/parent-type"
	parentName  = "iam.miloapis.com/parent-name"
)

// organizationNamespace begins the names of the namespaces of organizations.
const organizationNamespace = "organization-"

var errAllNamespaces = errors.New("cross-namespace queries not allowed for organization-scoped requests")

// claimedParent returns the parent that the extras of a review name. It returns an empty place unless each extra has one
// value.
func (r *Review) claimedParent() authz.Scope {
	group, kind, name := r.Extra[parentGroup], r.Extra[parentType], r.Extra[parentName]
	if len(group) != 1 || len(kind) != 1 || len(name) != 1 || kind[0] == "" || name[0] == "" {
		return authz.Scope{}
	}
	return authz.Scope{Type: iam.OpenFGAType(group[0], kind[0]), Ref: authz.Ref{Name: name[0]}}
}

// ScopeLabel returns the scope of a request as a metric label. The set of labels is fixed, whatever the request contains.
func (r *AccessRequest) ScopeLabel() string {
	switch {
	case r.Project != "" || r.Parent.Type == project:
		return "project"
	case r.Parent.Type == organization:
		return "organization"
	}
	return "cluster"
}

// checkOrganizationNamespace returns an error if a request for an organization leaves the namespace of that organization. Other requests
// pass.
func (r *AccessRequest) checkOrganizationNamespace(rules *TrustRules, typ string) error {
	if r.Parent.Type != organization {
		return nil
	}
	switch within := organizationNamespace + r.Parent.Name; {
	case r.Namespace != "" && r.Namespace != within && !rules.isClusterScopedType(typ):
		return fmt.Errorf("namespace mismatch: request namespace '%s' does not match organization namespace '%s'", r.Namespace, within)
	case r.Namespace == "" && rules.IsNamespacedType(typ):
		return errAllNamespaces
	}
	return nil
}

// canTrustParent reports whether the parent that a request names may count. A namespace as parent does not, because the
// request itself names its namespace. Neither does the parent of a named object of a followed kind, because the
// informer holds it.
//
// For a kind that is not followed, an organization counts only if the request is for a namespace. [AccessRequest.checkOrganizationNamespace] has
// ensured that it is the organization's own.
func (r *AccessRequest) canTrustParent(rules *TrustRules, q *authz.Query) bool {
	followed := rules.isFollowedType(q.Type)
	switch {
	case r.Parent.Name == "" || r.Parent.Type == namespace || followed && q.Name != "":
		return false
	case r.Parent.Type == organization && !followed:
		return r.Namespace != ""
	}
	return true
}
