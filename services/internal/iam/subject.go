package iam

import (
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// Subject finds who a subject of a binding is in OpenFGA. Without a subject there is a reason, as
// [iamv1alpha1.SubjectValid] tells it; for somebody who may not act there is none either.
func (o *Objects) Subject(s iamv1alpha1.Subject) (subject, reason string) {
	switch s.Kind {
	case iamv1alpha1.UserKind:
		return o.user(s.Name, s.UID)
	case iamv1alpha1.ServiceAccountKind:
		return o.serviceAccount(s)
	case iamv1alpha1.GroupKind:
		return o.group(s)
	}
	return "", iamv1alpha1.KindNotRecognized
}

func (o *Objects) user(name, uid string) (subject, reason string) {
	u := o.User(name)
	switch {
	case uid == "":
		return "", iamv1alpha1.UIDMissing
	case u == nil || u.DeletionTimestamp != nil:
		return "", iamv1alpha1.NotFound
	case string(u.UID) != uid:
		return "", iamv1alpha1.UIDMismatch
	case u.Status.State == iamv1alpha1.Inactive:
		return "", ""
	}
	return User(name), ""
}

// serviceAccount finds an account of IAM; one with a namespace is that of the core API, which its UID alone names.
func (o *Objects) serviceAccount(s iamv1alpha1.Subject) (subject, reason string) {
	if s.UID == "" {
		return "", iamv1alpha1.UIDMissing
	}
	if subject := ServiceAccount(s.UID); s.Namespace != "" && o.Inactive != nil && o.Inactive(subject) {
		return "", "" // It is one of IAM, whatever it was taken for.
	} else if s.Namespace != "" {
		return subject, ""
	}
	a := o.ServiceAccount(s.Name)
	switch {
	case a == nil || a.DeletionTimestamp != nil:
		return "", iamv1alpha1.NotFound
	case string(a.UID) != s.UID:
		return "", iamv1alpha1.UIDMismatch
	case a.Spec.State == iamv1alpha1.Inactive:
		return "", ""
	}
	return ServiceAccount(s.UID), ""
}

// group finds a Group; a name that no object can have is that of a group of the authenticator.
func (o *Objects) group(s iamv1alpha1.Subject) (subject, reason string) {
	if strings.Contains(s.Name, ":") {
		return TokenGroup(s.Name) + "#" + memberRelation, ""
	}
	switch {
	case s.UID == "":
		return "", iamv1alpha1.UIDMissing
	case s.Namespace == "":
		return "", iamv1alpha1.NamespaceMissing
	}
	g := o.Group(s.Namespace, s.Name)
	switch {
	case g == nil || g.DeletionTimestamp != nil:
		return "", iamv1alpha1.NotFound
	case string(g.UID) != s.UID:
		return "", iamv1alpha1.UIDMismatch
	}
	return GroupObject(g) + "#" + memberRelation, ""
}

// Member finds the user that a membership is for, as is recorded in it: as long as nothing is, nobody has it, so that
// who is made anew under a name never gets what another was to have.
func (o *Objects) Member(m *iamv1alpha1.GroupMembership) (subject, reason string) {
	u, first := o.User(m.Spec.UserRef.Name), m.Status.User
	switch {
	case u == nil || u.DeletionTimestamp != nil:
		return "", iamv1alpha1.NotFound
	case first == nil || first.Name != u.Name:
		return "", iamv1alpha1.UIDMissing
	}
	return o.user(u.Name, first.UID)
}
