// Package guard judges who gives rights of IAM to others, such that nobody gives what they do not have: whoever binds a role
// must have on the target all that it gives there, whoever adds somebody to a group all that the group has, whoever adds to
// a role all of that everywhere, and whoever gives an object to an owner all that is held there. Whoever may escalate passes
// unasked; what the admission policies ask for, which need nobody, is asked besides.
//
// It decides by the index of webhook. What somebody adds to a role may be bound anywhere a moment later, or have been a moment
// before: so nothing of what is asked depends on which of two changes was first.
package guard

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
	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/event"
)

// Source is what the guard decides by.
type Source struct {
	// Index holds what is declared, if that is known to be as new as the API server's word.
	Index func(context.Context) (*decide.Index, error)
	// Identity is whom an authenticated user is.
	Identity func(authenticationv1.UserInfo) decide.Subject
}

// Guard judges. The zero value judges nothing yet, and what cannot be judged is refused.
type Guard struct {
	source atomic.Pointer[Source]
}

// Follow lets the guard decide.
func (g *Guard) Follow(s Source) { g.source.Store(&s) }

// index is what to decide by, and whom the request is from.
func (g *Guard) index(ctx context.Context, request *admissionv1.AdmissionRequest) (*decide.Index, decide.Subject, error) {
	source := g.source.Load()
	if source == nil {
		return nil, decide.Subject{}, errors.New("the declared objects have not been read yet")
	}
	x, err := source.Index(ctx)
	if err != nil {
		return nil, decide.Subject{}, err
	}
	return x, source.Identity(request.UserInfo), nil
}

// decode reads an object as it is to be, and as it was, nil if there was none. It may be of any kind.
func decode[T any](request *admissionv1.AdmissionRequest) (is, was *T, err error) {
	is = new(T)
	if err := event.DecodeExactly(request.Object.Raw, is); err != nil {
		return nil, nil, fmt.Errorf("decoding what is written: %w", err)
	}
	if len(request.OldObject.Raw) == 0 {
		return is, nil, nil
	}
	was = new(T)
	if err := event.DecodeExactly(request.OldObject.Raw, was); err != nil {
		return nil, nil, fmt.Errorf("decoding what was there: %w", err)
	}
	return is, was, nil
}

// judgeBinding judges who gives a role to somebody.
func (g *Guard) judgeBinding(ctx context.Context, request *admissionv1.AdmissionRequest) error {
	binding, _, err := decode[iamv1alpha1.PolicyBinding](request)
	if err != nil {
		return err
	}
	x, who, err := g.index(ctx, request)
	if err != nil {
		return err
	}
	if m, lacks := x.MissingToBind(who, request.Namespace, &binding.Spec); lacks {
		return refuse(request, "the binding gives", m, "roles.iam.miloapis.com")
	}
	return nil
}

// judgeMembership judges who adds somebody to a group.
func (g *Guard) judgeMembership(ctx context.Context, request *admissionv1.AdmissionRequest) error {
	membership, _, err := decode[iamv1alpha1.GroupMembership](request)
	if err != nil {
		return err
	}
	x, who, err := g.index(ctx, request)
	if err != nil {
		return err
	}
	group := membership.Spec.GroupRef
	if m, lacks := x.MissingToJoin(who, decide.Ref{Namespace: group.Namespace, Name: group.Name}); lacks {
		m.Role, m.At = decide.Ref{}, decide.Place{} // What is bound to the group, and where, is not for everybody.
		return refuse(request, "the group has", m, "groups.iam.miloapis.com")
	}
	return nil
}

// judgeRole judges who adds permissions to a role, or lets it inherit others.
func (g *Guard) judgeRole(ctx context.Context, request *admissionv1.AdmissionRequest) error {
	role, was, err := decode[iamv1alpha1.Role](request)
	if err != nil {
		return err
	}
	if was == nil {
		was = &iamv1alpha1.Role{}
	}
	permissions := added(role.Spec.IncludedPermissions, was.Spec.IncludedPermissions)
	inherited := added(refs(role, request.Namespace), refs(was, request.Namespace))
	if len(permissions)+len(inherited) == 0 {
		return nil
	}
	x, who, err := g.index(ctx, request)
	if err != nil {
		return err
	}
	if m, lacks := x.MissingToInclude(who, permissions, inherited); lacks {
		return refuse(request, "it adds to the role", m, "roles.iam.miloapis.com")
	}
	return nil
}

// refs are the roles that one inherits.
func refs(role *iamv1alpha1.Role, namespace string) (all []decide.Ref) {
	for _, r := range role.Spec.InheritedRoles {
		if r.Namespace == "" {
			r.Namespace = namespace
		}
		all = append(all, decide.Ref{Namespace: r.Namespace, Name: r.Name})
	}
	return all
}

// added are those that were not there.
func added[T comparable](is, was []T) []T {
	before := make(map[T]struct{}, len(was))
	for _, one := range was {
		before[one] = struct{}{}
	}
	return slices.DeleteFunc(slices.Clone(is), func(one T) bool {
		_, there := before[one]
		return there
	})
}

// refuse says what is missing. Of a role it says no more than whoever writes it named.
func refuse(request *admissionv1.AdmissionRequest, gives string, m decide.Missing, escalate string) error {
	what := "more than " + request.UserInfo.Username + " has"
	switch {
	case m.Owners:
		what = fmt.Sprintf("more than can be judged: with what that belongs to, over %d owners are to be looked at", decide.MostOwners)
	case m.Permission != "" && m.At.Type != "":
		what = fmt.Sprintf("%s on %s, which %s does not have there", m.Permission, words(m.At), request.UserInfo.Username)
	case m.Permission != "":
		what = fmt.Sprintf("%s, which %s does not have wherever it counts", m.Permission, request.UserInfo.Username)
	case m.At.Type != "" && m.Role.Name == "":
		what = words(m.At) + ", which is not known to be there, so that nobody has what will be had there"
	case m.At.Type != "":
		what = fmt.Sprintf("a role on %s, a kind that nobody registers", words(m.At))
	case m.Role.Name != "":
		what = fmt.Sprintf("role %s, which is not there, so that nobody has what it will give", m.Role)
	}
	return admission.Refuse("%s %s: let somebody do this who has it, or who has the verb escalate on that %s", gives, what, escalate)
}

func words(p decide.Place) string {
	if p.All {
		return "every " + p.Type
	}
	return p.Type + " " + p.String()
}
