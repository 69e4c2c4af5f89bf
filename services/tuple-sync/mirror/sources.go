package mirror

import (
	"cmp"
	"slices"
	"strings"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/confirm"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/view"
)

// sources state what makes a tuple wanted: one way to it is enough.
func (s *State) sources(o *iam.Objects, t iam.Tuple) []confirm.Statement {
	if r := o.RoleOf(t.Object); r != nil {
		return s.closure(r, map[string]bool{})
	}
	if g := o.GroupOf(t.Object); g != nil {
		return append(s.groups.stated(g.Namespace, g.Name), s.member(o, g, t.User)...)
	}
	for _, b := range s.candidates(o, t) {
		if subject, ok := s.granted(o, b.Value, t); ok {
			role := o.RoleOfBinding(b.Value)
			return slices.Concat([]confirm.Statement{s.bindings.statement(b)}, s.roles.stated(role.Namespace, role.Name),
				s.stated(iam.TargetOf(b.Value)), subject)
		}
	}
	return append(s.stated(t.Object), s.stated(t.User)...) // An object and its parent.
}

// closure states a role, and all that it inherits.
func (s *State) closure(r *iamv1alpha1.Role, seen map[string]bool) []confirm.Statement {
	name := path(r.Namespace, r.Name)
	if seen[name] {
		return nil
	}
	seen[name] = true
	all := s.roles.stated(r.Namespace, r.Name)
	for _, ref := range r.Spec.InheritedRoles {
		if inherited := s.roles.get(cmp.Or(ref.Namespace, r.Namespace), ref.Name); inherited != nil {
			all = append(all, s.closure(inherited, seen)...)
		}
	}
	return all
}

// member states who is a member of a group, and by what.
func (s *State) member(o *iam.Objects, g *iamv1alpha1.Group, subject string) []confirm.Statement {
	for _, m := range s.memberships.by(byGroup, path(g.Namespace, g.Name)) {
		if is, _ := o.Member(m.Value); is == subject && m.Value.DeletionTimestamp == nil {
			return append([]confirm.Statement{s.memberships.statement(m)}, s.users.stated("", m.Value.Spec.UserRef.Name)...)
		}
	}
	return nil
}

// candidates are the bindings that a tuple may follow from.
func (s *State) candidates(o *iam.Objects, t iam.Tuple) []view.Object[iamv1alpha1.PolicyBinding] {
	if r := o.RoleOf(roleOfGrant(t.Object)); r != nil {
		return s.bindings.by(byGrant, iam.IndexOfGrant(r, t.Object))
	}
	if r := o.RoleOf(roleOfGrant(t.User)); r != nil {
		return s.bindings.by(byGrant, iam.IndexOfGrant(r, t.User))
	}
	return nil
}

// roleOfGrant is the role of a grant; of other objects none.
func roleOfGrant(object string) string {
	id, ok := strings.CutPrefix(object, iam.GrantType+":")
	if !ok {
		return ""
	}
	role, _, _ := strings.Cut(id, "/")
	return iam.RoleType + ":" + role
}

// granted states a subject of a binding that a tuple follows from: that of the tuple, or any.
func (s *State) granted(o *iam.Objects, b *iamv1alpha1.PolicyBinding, t iam.Tuple) ([]confirm.Statement, bool) {
	if b.DeletionTimestamp != nil || o.TargetReason(b) != "" || o.RoleOfBinding(b) == nil {
		return nil, false
	}
	whoever := t.User == iam.RoleObject(o.RoleOfBinding(b)) || roleOfGrant(t.User) != ""
	for _, subject := range b.Spec.Subjects {
		if is, _ := o.Subject(subject); is == "" || !whoever && is != t.User {
			continue
		}
		switch {
		case subject.Kind == iamv1alpha1.UserKind:
			return s.users.stated("", subject.Name), true
		case subject.Kind == iamv1alpha1.ServiceAccountKind && subject.Namespace == "":
			return s.accounts.stated("", subject.Name), true
		case subject.Kind == iamv1alpha1.GroupKind:
			return s.groups.stated(subject.Namespace, subject.Name), true
		}
		return nil, true
	}
	return nil, false
}

// stated states the object that is a target.
func (s *State) stated(object string) []confirm.Statement {
	if f, ok := s.at(object); ok {
		return []confirm.Statement{f.says}
	}
	return nil
}
