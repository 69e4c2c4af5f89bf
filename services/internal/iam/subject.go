package iam

import (
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// ResolveSubject returns the OpenFGA subject for a subject of a binding. If there is none, it returns a reason for the
// condition [iamv1alpha1.SubjectValid]. For an inactive user or account, both results are empty.
func (o *DeclaredObjects) ResolveSubject(s iamv1alpha1.Subject) (subject, reason string) {
	switch s.Kind {
	case iamv1alpha1.UserKind:
		return o.resolveUser(s.Name, s.UID)
	case iamv1alpha1.ServiceAccountKind:
		return o.resolveServiceAccount(s)
	case iamv1alpha1.GroupKind:
		return o.resolveGroup(s)
	}
	return "", iamv1alpha1.KindNotRecognized
}

func (o *DeclaredObjects) resolveUser(name, uid string) (subject, reason string) {
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
	return UserSubject(name), ""
}

// resolveServiceAccount returns the OpenFGA subject of a service account. An account with a namespace belongs to the
// core API, and its UID alone identifies it.
func (o *DeclaredObjects) resolveServiceAccount(s iamv1alpha1.Subject) (subject, reason string) {
	if s.UID == "" {
		return "", iamv1alpha1.UIDMissing
	}
	if subject := ServiceAccountSubject(s.UID); s.Namespace != "" && o.Inactive != nil && o.Inactive(subject) {
		return "", "" // The UID belongs to an inactive IAM account.
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
	return ServiceAccountSubject(s.UID), ""
}

// resolveGroup returns the OpenFGA subject of a Group. A name with a colon is no valid object name; it stands for a
// group that the authenticator reports.
func (o *DeclaredObjects) resolveGroup(s iamv1alpha1.Subject) (subject, reason string) {
	if strings.Contains(s.Name, ":") {
		return TokenGroupObject(s.Name) + "#" + memberRelation, ""
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

// ResolveMember returns the OpenFGA subject of a membership's user. The user must have the UID in the membership's
// status. So a new User with the same name does not inherit an earlier User's membership.
func (o *DeclaredObjects) ResolveMember(m *iamv1alpha1.GroupMembership) (subject, reason string) {
	u, first := o.User(m.Spec.UserRef.Name), m.Status.User
	switch {
	case u == nil || u.DeletionTimestamp != nil:
		return "", iamv1alpha1.NotFound
	case first == nil || first.Name != u.Name:
		return "", iamv1alpha1.UIDMissing
	}
	return o.resolveUser(u.Name, first.UID)
}
