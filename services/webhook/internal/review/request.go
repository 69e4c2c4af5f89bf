package review

import (
	"errors"
	"fmt"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/iam"
)

// The types of what requests are of most often.
const (
	project      = "resourcemanager.miloapis.com/Project"
	organization = "resourcemanager.miloapis.com/Organization"
	namespace    = iamv1alpha1.CoreGroup + "/Namespace"
)

// Request is what somebody wants to do, before it is known what that takes.
type Request struct {
	decide.Subject

	Verb, Group, Resource, Subresource string
	Namespace, Name                    string
	// Project is the one at whose endpoint it is asked; empty elsewhere.
	Project string
	// Parent is what the request says that the object is of.
	Parent decide.Place
}

// Reasons for having no opinion.
var (
	errMasters = errors.New("system:masters is not decided here")
	errNobody  = errors.New("user UID is required: this request has neither that nor a name")
	errNoUID   = errors.New("user UID is required: this authenticator gives none, and names are not taken for it (--subject=uid)")
)

// Request puts a review in these terms. There is none for what is not decided here.
func (r *Review) Request(rules *Rules, project string) (Request, error) {
	switch {
	case slices.Contains(r.Groups, "system:masters"):
		return Request{}, errMasters
	case r.Resource == nil:
		return Request{}, fmt.Errorf("paths are not decided here: %q", r.NonResource.Path)
	case r.UID == "" && r.User == "":
		return Request{}, errNobody
	}
	a := r.Resource
	return Request{
		Subject: rules.Identify(authenticationv1.UserInfo{Username: r.User, UID: r.UID, Groups: r.Groups}),
		Verb:    a.Verb, Group: a.Group, Resource: a.Resource, Subresource: a.Subresource,
		Namespace: a.Namespace, Name: a.name(), Project: project, Parent: r.parent(),
	}, nil
}

// Unidentified says why a review is about no User, if that is a mistake of how things are set up.
func (r *Review) Unidentified(rules *Rules) error {
	if r.UID == "" && !isOfSystem(r.User) && rules.Subject == ByUID {
		return errNoUID
	}
	return nil
}

// Question finds what a request takes. It is a question that nobody is allowed, with the reason, if there is nothing.
func (r *Request) Question(rules *Rules, registry *iam.Registry) (decide.Question, error) {
	q := decide.Question{Subject: r.Subject, Namespace: r.Namespace, Name: r.Name}
	k, permission, ok := registry.Requested(r.Group, r.Resource, r.Subresource, r.Verb)
	if !ok {
		return q, fmt.Errorf("permission '%s' not registered", iam.Permission(r.Group, r.Resource, r.Subresource, r.Verb))
	}
	if r.Verb == "create" && r.Subresource == "" {
		q.Name = "" // It may have a name, but there is no such object yet.
	}
	if r.Project != "" {
		q.Permission, q.Type = permission, project
		q.Namespace, q.Name, q.There = "", r.Project, true
		return q, nil
	}
	if err := r.guard(rules, k.Type); err != nil {
		return q, err
	}
	if q.Permission, q.Type = permission, k.Type; rules.isGlobal(k.Type) {
		q.Namespace = "" // That of a namespace says one all the same.
	}
	if rules.TrustParents && r.isCredible(rules, &q) {
		q.Parent = r.Parent
	}
	return q, nil
}
