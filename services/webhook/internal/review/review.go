package review

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
)

// Bounds of the lists in a review. The server bounds its size.
const (
	maxGroups       = 10_000
	maxExtra        = 1_000
	maxRequirements = 1_000
)

// The supported API versions. Both get the same answer, each in its own version.
const (
	v1      = "authorization.k8s.io/v1"
	v1beta1 = "authorization.k8s.io/v1beta1"
	kind    = "SubjectAccessReview"
)

// Review is a decoded SubjectAccessReview. Exactly one of Resource and NonResource is set.
type Review struct {
	// Version is the API version of the answer.
	Version     string
	User, UID   string
	Groups      []string
	Extra       map[string][]string
	Resource    *ResourceAttributes
	NonResource *NonResourceAttributes
}

// ResourceAttributes holds the attributes of a request for objects.
type ResourceAttributes struct {
	Namespace     string        `json:"namespace"`
	Verb          string        `json:"verb"`
	Group         string        `json:"group"`
	Resource      string        `json:"resource"`
	Subresource   string        `json:"subresource"`
	Name          string        `json:"name"`
	FieldSelector fieldSelector `json:"fieldSelector"`
}

// NonResourceAttributes holds the attributes of a request for a path.
type NonResourceAttributes struct {
	Path string `json:"path"`
	Verb string `json:"verb"`
}

type fieldSelector struct {
	Raw          string                `json:"rawSelector"`
	Requirements []selectorRequirement `json:"requirements"`
}

type selectorRequirement struct {
	Key      string   `json:"key"`
	Operator string   `json:"operator"`
	Values   []string `json:"values"`
}

// reviewMessage lists the fields of a SubjectAccessReview that are decoded.
type reviewMessage struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Spec       struct {
		User        string                 `json:"user"`
		UID         string                 `json:"uid"`
		Groups      []string               `json:"groups"`
		Group       []string               `json:"group"` // the name in v1beta1
		Extra       map[string][]string    `json:"extra"`
		Resource    *ResourceAttributes    `json:"resourceAttributes"`
		NonResource *NonResourceAttributes `json:"nonResourceAttributes"`
	} `json:"spec"`
}

// Decode decodes a SubjectAccessReview. It rejects duplicate fields, and reviews with both or neither kind of
// attributes.
func Decode(body []byte) (*Review, error) {
	var m reviewMessage
	if err := json.Unmarshal(body, &m); err != nil {
		return nil, errors.New("this is not a SubjectAccessReview: it is not the JSON of one")
	}
	r := &Review{
		Version: m.APIVersion, User: m.Spec.User, UID: m.Spec.UID, Groups: m.Spec.Groups, Extra: m.Spec.Extra,
		Resource: m.Spec.Resource, NonResource: m.Spec.NonResource,
	}
	switch {
	case m.Kind != kind || m.APIVersion != v1 && m.APIVersion != v1beta1:
		return nil, fmt.Errorf("this is not a SubjectAccessReview: send kind %s of apiVersion %s or %s", kind, v1, v1beta1)
	case m.APIVersion == v1beta1:
		r.Groups = m.Spec.Group
	}
	return r, r.validateReview()
}

func (r *Review) validateReview() error {
	if r.Resource != nil == (r.NonResource != nil) {
		return errors.New("must specify one of resource or non-resource attributes, and not both")
	}
	if len(r.Groups) > maxGroups || len(r.Extra) > maxExtra || r.Resource != nil && len(r.Resource.FieldSelector.Requirements) > maxRequirements {
		return fmt.Errorf("this review lists too much: at most %d groups, %d extras and %d requirements are read", maxGroups, maxExtra, maxRequirements)
	}
	return nil
}

// singleObjectName returns the name of the only object that a request concerns, or "". A deletecollection has no name, but its
// selector can leave a single object.
func (r *ResourceAttributes) singleObjectName() string {
	if r.Name != "" || r.Verb != "deletecollection" || r.FieldSelector.Raw != "" {
		return r.Name
	}
	of := slices.Clone(r.FieldSelector.Requirements)
	of = slices.DeleteFunc(of, func(q selectorRequirement) bool { return q.Key != "metadata.name" })
	if len(of) == 1 && of[0].Operator == "In" && len(of[0].Values) == 1 {
		return of[0].Values[0]
	}
	return ""
}

// isSystemName reports whether the name of a user or a group is reserved for the system.
func isSystemName(name string) bool { return strings.HasPrefix(name, "system:") }
