package infer

import (
	"cmp"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// CompareSubjects orders subjects by kind, namespace, name and group.
func CompareSubjects(a, b rbacv1.Subject) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace),
		strings.Compare(a.Name, b.Name), strings.Compare(a.APIGroup, b.APIGroup))
}

// Identity is the set of subjects that Kubernetes treats as one requester, by kind, namespace and name.
type Identity map[rbacv1.Subject]struct{}

// Prefixes and groups that Kubernetes assigns to users.
const (
	serviceAccountPrefix = "system:serviceaccount:"
	allServiceAccounts   = "system:serviceaccounts"
	allAuthenticated     = "system:authenticated"
	allUnauthenticated   = "system:unauthenticated"
	anonymous            = "system:anonymous"
)

// NewSubjectIdentity returns the identity of a subject without any group. A user and the service account that Kubernetes means by
// the user's name are one identity.
func NewSubjectIdentity(subject rbacv1.Subject) Identity {
	who := Identity{{Kind: subject.Kind, Namespace: subject.Namespace, Name: subject.Name}: {}}
	if subject.Kind == rbacv1.ServiceAccountKind {
		who[rbacv1.Subject{Kind: rbacv1.UserKind, Name: serviceAccountPrefix + subject.Namespace + ":" + subject.Name}] = struct{}{}
	}
	if full, ok := strings.CutPrefix(subject.Name, serviceAccountPrefix); ok && subject.Kind == rbacv1.UserKind {
		namespace, account, _ := strings.Cut(full, ":")
		who[rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}] = struct{}{}
	}
	return who
}

// NewIdentity returns the identity of a subject that is a member of the given groups. The API server stores no group
// membership, except for its own groups. Without system:unauthenticated, the subject counts as authenticated.
func NewIdentity(subject rbacv1.Subject, groups []string) Identity {
	who, name := Identity{}, subject.Name
	groups = slices.Clone(groups)
	switch subject.Kind {
	case rbacv1.GroupKind:
		if groups = append(groups, name); strings.HasPrefix(name, allServiceAccounts+":") {
			groups = append(groups, allServiceAccounts)
		}
	case rbacv1.ServiceAccountKind:
		name = serviceAccountPrefix + subject.Namespace + ":" + name
		fallthrough
	default:
		who[rbacv1.Subject{Kind: rbacv1.UserKind, Name: name}] = struct{}{}
		if full, ok := strings.CutPrefix(name, serviceAccountPrefix); ok {
			namespace, account, _ := strings.Cut(full, ":")
			who[rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}] = struct{}{}
			groups = append(groups, allServiceAccounts, allServiceAccounts+":"+namespace)
		}
	}
	if name == anonymous && subject.Kind == rbacv1.UserKind {
		groups = append(groups, allUnauthenticated)
	}
	if !slices.Contains(groups, allUnauthenticated) {
		groups = append(groups, allAuthenticated)
	}
	for _, group := range groups {
		who[rbacv1.Subject{Kind: rbacv1.GroupKind, Name: group}] = struct{}{}
	}
	return who
}

// MatchingSubject returns the first subject of a binding that matches the identity.
func (who Identity) MatchingSubject(b *Binding) (rbacv1.Subject, bool) {
	for s := range b.effectiveSubjects() {
		if _, ok := who[rbacv1.Subject{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}]; ok {
			return s, true
		}
	}
	return rbacv1.Subject{}, false
}
