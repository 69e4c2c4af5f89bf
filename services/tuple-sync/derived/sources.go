package derived

import (
	"cmp"
	"slices"
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/informer"
)

// sources holds, for the user of each tuple, statements that justify the tuple. One reason is enough. A tuple without
// statements is no longer wanted.
type sources map[string][]confirm.Statement

// needsSources reports whether the tuple of a user was requested and has no statements yet.
func (s sources) needsSources(user string) bool {
	found, asked := s[user]
	return asked && found == nil
}

func (s *State) sourcesOf(o *iam.Lookup, object string, add []iam.Tuple) sources {
	of := sources{}
	for _, t := range add {
		of[t.User] = nil
	}
	switch g := o.GroupOf(object); {
	case o.RoleOf(object) != nil:
		all := s.roleStatements(o.RoleOf(object), map[string]bool{})
		for user := range of {
			of[user] = all
		}
	case g != nil:
		for _, m := range s.memberships.objectsBy(byGroup, namespacedPath(g.Namespace, g.Name)) {
			if is, _ := o.Member(m.Value); m.Value.DeletionTimestamp == nil && of.needsSources(is) {
				of[is] = slices.Concat(s.groups.statementsOf(g.Namespace, g.Name), []confirm.Statement{s.memberships.statementOf(m)},
					s.users.statementsOf("", m.Value.Spec.UserRef.Name))
			}
		}
	case o.RoleOf(roleOfGrant(object)) != nil:
		for _, b := range s.bindings.objectsBy(byGrant, iam.IndexOfGrant(o.RoleOf(roleOfGrant(object)), object)) {
			s.ofGrant(o, b, of)
		}
	default:
		s.ofTarget(o, object, of)
	}
	return of
}

// ofGrant adds the reasons for tuples of a grant that follow from a binding: its subjects and its role.
func (s *State) ofGrant(o *iam.Lookup, b informer.Object[iamv1alpha1.PolicyBinding], of sources) {
	if b.Value.DeletionTimestamp != nil || o.TargetReason(b.Value) != "" {
		return
	}
	role := o.RoleOfBinding(b.Value)
	if role == nil {
		return
	}
	for _, subject := range b.Value.Spec.Subjects {
		is, _ := o.Subject(subject)
		if is == "" {
			continue
		}
		for _, user := range []string{is, iam.RoleObject(role)} {
			if of.needsSources(user) {
				of[user] = s.actingStatements(b, role, subject)
			}
		}
	}
}

// ofTarget adds the reasons for tuples of a target: its grants and its parents.
func (s *State) ofTarget(o *iam.Lookup, object string, of sources) {
	for _, b := range s.bindings.objectsBy(byTarget, object) {
		role := o.RoleOfBinding(b.Value)
		if role == nil || b.Value.DeletionTimestamp != nil || !of.needsSources(iam.Grant(role, object)) || o.TargetReason(b.Value) != "" {
			continue
		}
		i := slices.IndexFunc(b.Value.Spec.Subjects, func(subject iamv1alpha1.Subject) bool { is, _ := o.Subject(subject); return is != "" })
		if i >= 0 {
			of[iam.Grant(role, object)] = s.actingStatements(b, role, b.Value.Spec.Subjects[i])
		}
	}
	for user := range of {
		if its, parent := s.statementOf(object), s.statementOf(user); of.needsSources(user) && len(its) > 0 && len(parent) > 0 {
			of[user] = slices.Concat(its, parent)
		}
	}
}

// actingStatements returns the statements on which a binding of one subject depends.
func (s *State) actingStatements(b informer.Object[iamv1alpha1.PolicyBinding], role *iamv1alpha1.Role, subject iamv1alpha1.Subject) []confirm.Statement {
	all := slices.Concat([]confirm.Statement{s.bindings.statementOf(b)}, s.roles.statementsOf(role.Namespace, role.Name), s.statementOf(iam.TargetOf(b.Value)))
	switch {
	case subject.Kind == iamv1alpha1.UserKind:
		return append(all, s.users.statementsOf("", subject.Name)...)
	case isCore(subject):
		for _, a := range s.accounts.objectsBy(itself, iam.ServiceAccount(subject.UID)) {
			all = append(all, s.accounts.statementOf(a))
		}
	case subject.Kind == iamv1alpha1.ServiceAccountKind:
		return append(all, s.accounts.statementsOf("", subject.Name)...)
	case subject.Kind == iamv1alpha1.GroupKind:
		return append(all, s.groups.statementsOf(subject.Namespace, subject.Name)...)
	}
	return all
}

// roleStatements returns the statements of a role and of all roles that it inherits.
func (s *State) roleStatements(r *iamv1alpha1.Role, seen map[string]bool) []confirm.Statement {
	name := namespacedPath(r.Namespace, r.Name)
	if seen[name] {
		return nil
	}
	seen[name] = true
	all := s.roles.statementsOf(r.Namespace, r.Name)
	for _, ref := range r.Spec.InheritedRoles {
		if inherited := s.roles.getLive(cmp.Or(ref.Namespace, r.Namespace), ref.Name); inherited != nil {
			all = append(all, s.roleStatements(inherited, seen)...)
		}
	}
	return all
}

// roleOfGrant returns the role object of a grant, or "" for other objects.
func roleOfGrant(object string) string {
	id, ok := strings.CutPrefix(object, iam.GrantType+":")
	if !ok {
		return ""
	}
	role, _, _ := strings.Cut(id, "/")
	return iam.RoleType + ":" + role
}

// statementOf returns the statement of the declared object behind an OpenFGA object, if it exists.
func (s *State) statementOf(object string) []confirm.Statement {
	if f, ok := s.objectAt(object); ok {
		return []confirm.Statement{f.says}
	}
	return nil
}
