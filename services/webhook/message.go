package webhook

import (
	"strconv"
	"strings"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

// queryFromRequest converts a request to a question of the index. A kind that is not registered has no permission.
func (s *accessServer) queryFromRequest(x *authz.Index, who authz.Subject, verb string, on *accessv1.Resource) authz.Query {
	r := review.AccessRequest{
		Subject: who, Verb: verb, Group: on.GetApiGroup(), Resource: on.GetResource(), Subresource: on.GetSubresource(),
		Namespace: on.GetNamespace(), Name: on.GetName(), Project: on.GetProject(),
	}
	q, _ := r.ToQuery(s.rules, x.Registry()) // The question without permission already represents the error.
	return q
}

// lacksNamespace reports whether a question names no namespace although its objects are in namespaces.
func (s *accessServer) lacksNamespace(q authz.Query) bool {
	return q.Namespace == "" && s.rules.IsNamespacedType(q.Type)
}

func subjectFromMessage(s *accessv1.Subject) authz.Subject {
	return authz.Subject{User: s.GetUser(), Account: s.GetServiceAccountUid(), Groups: s.GetGroups()}
}

func toNameMessage(r authz.Ref) *accessv1.Name {
	return &accessv1.Name{Namespace: r.Namespace, Name: r.Name}
}

// toOptionalNameMessage returns the name, or nil if it is empty.
func toOptionalNameMessage(r authz.Ref) *accessv1.Name {
	if r.Name == "" {
		return nil
	}
	return toNameMessage(r)
}

func toPlaceMessage(p authz.Scope) *accessv1.Place {
	return &accessv1.Place{Type: p.Type, Object: toOptionalNameMessage(p.Ref), All: p.All}
}

// toPrincipalMessage converts a principal. The numbers of both enumerations are equal.
func toPrincipalMessage(p authz.Principal) *accessv1.Principal {
	return &accessv1.Principal{Kind: accessv1.Principal_Kind(p.Kind), Name: toOptionalNameMessage(p.Ref), Uid: p.UID}
}

func toGrantMessage(p authz.Proof) *accessv1.Grant {
	return &accessv1.Grant{
		Binding: toNameMessage(p.Binding), Role: toNameMessage(p.Role), Principal: toPrincipalMessage(p.Principal), At: toPlaceMessage(p.At),
	}
}

func toHolderMessage(h authz.AllowedPrincipal) *accessv1.Holder {
	return &accessv1.Holder{Principal: toPrincipalMessage(h.Principal), Grant: toGrantMessage(h.Proof), Membership: toOptionalNameMessage(h.Membership)}
}

func toRightMessage(x *authz.Index, r authz.HeldRole) *accessv1.Right {
	return &accessv1.Right{
		Grant: toGrantMessage(r.Proof), Membership: toOptionalNameMessage(r.Membership),
		Permissions: x.RolePermissionsOn(r.Proof.Role, r.Proof.At),
	}
}

func toGainMessage(g authz.PermissionGain) *accessv1.Gain {
	return &accessv1.Gain{
		Subject: &accessv1.BindingSubject{Kind: g.Subject.Kind, Name: g.Subject.Name, Namespace: g.Subject.Namespace, Uid: g.Subject.UID},
		Absent:  g.Absent, Permissions: g.Permissions,
	}
}

func toMissingMessage(m authz.MissingRight) *accessv1.Missing {
	missing := &accessv1.Missing{Role: toOptionalNameMessage(m.Role), Permission: m.Permission}
	if m.At.Type != "" {
		missing.At = toPlaceMessage(m.At)
	}
	return missing
}

func toProtectedResourceMessage(registry *iam.Registry, k *iam.RegisteredKind) *accessv1.ProtectedResource {
	m := &accessv1.ProtectedResource{
		Name: k.Resource.Name, Type: k.Type, Plural: k.Resource.Spec.Plural, Permissions: k.Permissions,
		Parents: toMessages(k.Parents, func(parent *iam.RegisteredKind) string { return parent.Type }),
	}
	if f := registry.FindingFor(k.Resource.Name); f.Reason != iamv1alpha1.IAMSystemConfigured {
		m.Reason, m.Message = f.Reason, f.Message
	}
	return m
}

// joinKey joins parts so that the order of keys is the order of the parts.
func joinKey(parts ...string) string { return strings.Join(parts, "\x00") }

func principalKey(p authz.Principal) string {
	return joinKey(strconv.Itoa(int(p.Kind)), p.Namespace, p.Name, p.UID)
}

func holderKey(h authz.AllowedPrincipal) string { return principalKey(h.Principal) }

func rightKey(r authz.HeldRole) string {
	all := "1"
	if r.Proof.At.All {
		all = "0"
	}
	return joinKey(r.Proof.At.Type, all, r.Proof.At.Namespace, r.Proof.At.Name, r.Proof.Role.Namespace, r.Proof.Role.Name, principalKey(r.Proof.Principal))
}
