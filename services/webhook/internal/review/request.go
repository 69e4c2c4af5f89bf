package review

import (
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/iam"
)

// Types of the most frequent parents.
const (
	project      = "resourcemanager.miloapis.com/Project"
	organization = "resourcemanager.miloapis.com/Organization"
	namespace    = iamv1alpha1.CoreGroup + "/Namespace"
)

// AccessRequest is an intended action, before its permission is determined.
type AccessRequest struct {
	authz.Subject

	Verb, Group, Resource, Subresource string
	Namespace, Name                    string
	// Project is the project in the URL of the review, or empty.
	Project string
	// Parent is the parent that the request names.
	Parent authz.Scope
}

// Reasons for no opinion.
var (
	errMasters = errors.New("requests of the group system:masters are not decided by Entail")
	errNobody  = errors.New("user UID is required: this request has neither that nor a name")
	errNoUID   = errors.New("user UID is required: the authenticator gives none, and --subject=uid does not accept names")
)

// ToAccessRequest converts a review. It returns an error for requests that are not decided here.
func (r *Review) ToAccessRequest(rules *TrustRules, project string) (AccessRequest, error) {
	switch {
	case slices.Contains(r.Groups, "system:masters"):
		return AccessRequest{}, errMasters
	case r.Resource == nil:
		return AccessRequest{}, fmt.Errorf("requests for paths such as %q are not decided by Entail", r.NonResource.Path)
	case r.UID == "" && r.User == "":
		return AccessRequest{}, errNobody
	}
	a := r.Resource
	return AccessRequest{
		Subject: rules.IdentifySubject(authenticationv1.UserInfo{Username: r.User, UID: r.UID, Groups: r.Groups}),
		Verb:    a.Verb, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource,
		Namespace: a.Namespace, Name: a.singleObjectName(), Project: project, Parent: r.claimedParent(),
	}, nil
}

// UnidentifiedUserErr returns an error if a review identifies no User, and the configuration is the likely cause.
func (r *Review) UnidentifiedUserErr(rules *TrustRules) error {
	if r.UID == "" && !isSystemName(r.User) && rules.Subject == ByUID {
		return errNoUID
	}
	return nil
}

// ToQuery returns the question of a request. If nothing can allow the request, it returns a question without
// permission and the reason as an error.
func (r *AccessRequest) ToQuery(rules *TrustRules, registry *iam.Registry) (authz.Query, error) {
	q := authz.Query{Subject: r.Subject, Namespace: r.Namespace, Name: r.Name}
	k, permission, ok := registry.ResolveRequest(r.Group, r.Resource, r.Subresource, r.Verb)
	if !ok {
		return q, fmt.Errorf("not protected by Entail: no ProtectedResource registers permission '%s'",
			iam.PermissionName(r.Group, r.Resource, r.Subresource, r.Verb))
	}
	if r.Verb == "create" && r.Subresource == "" {
		q.Name = "" // It may have a name, but the object does not exist yet.
	}
	if r.Project != "" {
		q.Permission, q.Type = permission, project
		q.Namespace, q.Name, q.RequireExists = "", r.Project, true
		return q, nil
	}
	if err := r.checkOrganizationNamespace(rules, k.Type); err != nil {
		return q, err
	}
	if q.Permission, q.Type = permission, k.Type; rules.isClusterScopedType(k.Type) {
		q.Namespace = "" // A request for a Namespace names itself as its namespace.
	}
	if rules.TrustParents && r.canTrustParent(rules, &q) {
		q.Parent = r.Parent
	}
	return q, nil
}
