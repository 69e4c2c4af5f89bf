package review

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// Bounds of what a review lists. Its size is for the server to bound.
const (
	maxGroups       = 10_000
	maxExtra        = 1_000
	maxRequirements = 1_000
)

// The versions that there are; both are answered alike, each in its own.
const (
	v1      = "authorization.k8s.io/v1"
	v1beta1 = "authorization.k8s.io/v1beta1"
	kind    = "SubjectAccessReview"
)

// Review is a question of the API server. Exactly one of Resource and NonResource is set.
type Review struct {
	// Version is the one in which an answer is expected.
	Version     string
	User, UID   string
	Groups      []string
	Extra       map[string][]string
	Resource    *Resource
	NonResource *NonResource
}

// Resource is what a request for objects is about.
type Resource struct {
	Namespace     string   `json:"namespace"`
	Verb          string   `json:"verb"`
	Group         string   `json:"group"`
	Resource      string   `json:"resource"`
	Subresource   string   `json:"subresource"`
	Name          string   `json:"name"`
	FieldSelector selector `json:"fieldSelector"`
}

// NonResource is what another request is about.
type NonResource struct {
	Path string `json:"path"`
	Verb string `json:"verb"`
}

type selector struct {
	Raw          string        `json:"rawSelector"`
	Requirements []requirement `json:"requirements"`
}

type requirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// message is a SubjectAccessReview as far as it is read.
type message struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		User        string              `json:"user"`
		UID         string              `json:"uid"`
		Groups      []string            `json:"groups"`
		Group       []string            `json:"group"` // As v1beta1 calls them.
		Extra       map[string][]string `json:"extra"`
		Resource    *Resource           `json:"resourceAttributes"`
		NonResource *NonResource        `json:"nonResourceAttributes"`
	} `json:"spec"`
}

// Decode reads a SubjectAccessReview. What says a thing twice, or two things of which only one can be, is none.
func Decode(body []byte) (*Review, error) {
	var m message
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, errors.New("this is no SubjectAccessReview: it is not the JSON of one")
	}
	r := &Review{
		Version: m.APIVersion, User: m.Spec.User, UID: m.Spec.UID, Groups: m.Spec.Groups, Extra: m.Spec.Extra,
		Resource: m.Spec.Resource, NonResource: m.Spec.NonResource,
	}
	switch {
	case m.Kind != kind || m.APIVersion != v1 && m.APIVersion != v1beta1:
		return nil, fmt.Errorf("this is no SubjectAccessReview: send kind %s of apiVersion %s or %s", kind, v1, v1beta1)
	case m.APIVersion == v1beta1:
		r.Groups = m.Spec.Group
	}
	return r, r.validate()
}

func (r *Review) validate() error {
	if r.Resource != nil == (r.NonResource != nil) {
		return errors.New("must specify one of resource or non-resource attributes, and not both")
	}
	if len(r.Groups) > maxGroups || len(r.Extra) > maxExtra || r.Resource != nil && len(r.Resource.FieldSelector.Requirements) > maxRequirements {
		return fmt.Errorf("this review lists too much: at most %d groups, %d extras and %d requirements are read", maxGroups, maxExtra, maxRequirements)
	}
	return nil
}

// name is the one object that a request is about, however it says so; empty if there is none. To delete a collection names
// none, but its selector may leave no more than one.
func (r *Resource) name() string {
	if r.Name != "" || r.Verb != "deletecollection" || r.FieldSelector.Raw != "" {
		return r.Name
	}
	of := slices.Clone(r.FieldSelector.Requirements)
	of = slices.DeleteFunc(of, func(q requirement) bool { return q.Key != "metadata.name" })
	if len(of) == 1 && of[0].Operator == "In" && len(of[0].Values) == 1 {
		return of[0].Values[0]
	}
	return ""
}

// isOfSystem says of the name of a user or a group whether it is the system's own.
func isOfSystem(name string) bool { return strings.HasPrefix(name, "system:") }
