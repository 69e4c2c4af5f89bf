// Package validating answers admission webhooks for changes that give rights of IAM. It refuses a change by which a user
// gives more than the user has:
//
// - a binding requires all permissions of the role on the target;
// - a group membership requires all rights of the group;
// - an addition to a role requires the added permissions everywhere;
// - a new owner of an object requires all rights that are held on the owner.
//
// A user with the verb "escalate" passes without a call of the webhook. The admission policies apply besides, and need
// no service.
//
// The guard decides by the index of webhook. A role may be bound shortly before or after it grows, so no requirement
// depends on the order of two changes.
package validating

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/entail-dev/entail/services/internal/admission"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/event"
)

// ValidatorInputs holds the inputs of the guard.
type ValidatorInputs struct {
	// Index returns the index if it is proven to be as new as the API server.
	Index func(context.Context) (*authz.Index, error)
	// Identity returns the IAM subject of an authenticated user.
	Identity func(authenticationv1.UserInfo) authz.Subject
}

// Validator judges changes. The zero value refuses all of them until [Validator.SetInputs] is called.
type Validator struct {
	source atomic.Pointer[ValidatorInputs]
}

// SetInputs sets the source, from which on the guard can allow changes.
func (g *Validator) SetInputs(s ValidatorInputs) { g.source.Store(&s) }

// indexAndSubject returns the index and the subject of the request.
func (g *Validator) indexAndSubject(ctx context.Context, request *admissionv1.AdmissionRequest) (*authz.Index, authz.Subject, error) {
	source := g.source.Load()
	if source == nil {
		return nil, authz.Subject{}, errors.New("the declared objects have not been read yet")
	}
	x, err := source.Index(ctx)
	if err != nil {
		return nil, authz.Subject{}, err
	}
	return x, source.Identity(request.UserInfo), nil
}

// decodeObjects decodes the new and the old object of a request. The old one is nil for a creation.
func decodeObjects[T any](request *admissionv1.AdmissionRequest) (is, was *T, err error) {
	is = new(T)
	if err := event.DecodeObjectCaseSensitive(request.Object.Raw, is); err != nil {
		return nil, nil, fmt.Errorf("decoding the new object: %w", err)
	}
	if len(request.OldObject.Raw) == 0 {
		return is, nil, nil
	}
	was = new(T)
	if err := event.DecodeObjectCaseSensitive(request.OldObject.Raw, was); err != nil {
		return nil, nil, fmt.Errorf("decoding the old object: %w", err)
	}
	return is, was, nil
}

// validateBinding checks the author of a PolicyBinding.
func (g *Validator) validateBinding(ctx context.Context, request *admissionv1.AdmissionRequest) error {
	binding, _, err := decodeObjects[iamv1alpha1.PolicyBinding](request)
	if err != nil {
		return err
	}
	x, who, err := g.indexAndSubject(ctx, request)
	if err != nil {
		return err
	}
	if m, lacks := x.MissingToBind(who, request.Namespace, &binding.Spec); lacks {
		return missingRightError(request, "the binding gives", m, "roles.iam.miloapis.com")
	}
	return nil
}

// validateMembership checks the author of a GroupMembership.
func (g *Validator) validateMembership(ctx context.Context, request *admissionv1.AdmissionRequest) error {
	membership, _, err := decodeObjects[iamv1alpha1.GroupMembership](request)
	if err != nil {
		return err
	}
	x, who, err := g.indexAndSubject(ctx, request)
	if err != nil {
		return err
	}
	group := membership.Spec.GroupRef
	if m, lacks := x.MissingToJoin(who, authz.Ref{Namespace: group.Namespace, Name: group.Name}); lacks {
		m.Role, m.At = authz.Ref{}, authz.Scope{} // The author may not be allowed to read the bindings of the group.
		return missingRightError(request, "the group has", m, "groups.iam.miloapis.com")
	}
	return nil
}

// validateRole checks the author of a Role that gains permissions or inherited roles.
func (g *Validator) validateRole(ctx context.Context, request *admissionv1.AdmissionRequest) error {
	role, was, err := decodeObjects[iamv1alpha1.Role](request)
	if err != nil {
		return err
	}
	if was == nil {
		was = &iamv1alpha1.Role{}
	}
	permissions := addedElements(role.Spec.IncludedPermissions, was.Spec.IncludedPermissions)
	inherited := addedElements(inheritedRefs(role, request.Namespace), inheritedRefs(was, request.Namespace))
	if len(permissions)+len(inherited) == 0 {
		return nil
	}
	x, who, err := g.indexAndSubject(ctx, request)
	if err != nil {
		return err
	}
	if m, lacks := x.MissingToInclude(who, permissions, inherited); lacks {
		return missingRightError(request, "it adds to the role", m, "roles.iam.miloapis.com")
	}
	return nil
}

// inheritedRefs lists the roles that a role inherits.
func inheritedRefs(role *iamv1alpha1.Role, namespace string) (all []authz.Ref) {
	for _, r := range role.Spec.InheritedRoles {
		if r.Namespace == "" {
			r.Namespace = namespace
		}
		all = append(all, authz.Ref{Namespace: r.Namespace, Name: r.Name})
	}
	return all
}

// addedElements returns the elements of is that are not in was.
func addedElements[T comparable](is, was []T) []T {
	before := make(map[T]struct{}, len(was))
	for _, one := range was {
		before[one] = struct{}{}
	}
	return slices.DeleteFunc(slices.Clone(is), func(one T) bool {
		_, there := before[one]
		return there
	})
}

// missingRightError returns a refusal that names the missing right. It names no roles and places that the author did not name.
func missingRightError(request *admissionv1.AdmissionRequest, gives string, m authz.MissingRight, escalate string) error {
	what := "more than " + request.UserInfo.Username + " has"
	switch {
	case m.Owners:
		what = fmt.Sprintf("too many owners: more than %d would have to be checked", authz.MaxOwners)
	case m.Permission != "" && m.At.Type != "":
		what = fmt.Sprintf("%s on %s, which %s does not have there", m.Permission, scopeText(m.At), request.UserInfo.Username)
	case m.Permission != "":
		what = fmt.Sprintf("%s, which %s does not have wherever it counts", m.Permission, request.UserInfo.Username)
	case m.At.Type != "" && m.Role.Name == "":
		what = scopeText(m.At) + ", which may not exist, so nobody has permissions on it"
	case m.At.Type != "":
		what = fmt.Sprintf("a role on %s, a kind that no ProtectedResource registers", scopeText(m.At))
	case m.Role.Name != "":
		what = fmt.Sprintf("role %s, which does not exist, so its permissions are not known", m.Role)
	}
	return admission.RefusalError("%s %s; ask a user who has it, or who has the verb escalate on that %s", gives, what, escalate)
}

func scopeText(p authz.Scope) string {
	if p.All {
		return "every " + p.Type
	}
	return p.Type + " " + p.String()
}
