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

// queryOf converts a request to a question of the index. A kind that is not registered has no permission.
func (s *server) queryOf(x *authz.Index, who authz.Subject, verb string, on *accessv1.Resource) authz.Query {
	r := review.Request{
		Subject: who, Verb: verb, Group: on.GetApiGroup(), Resource: on.GetResource(), Subresource: on.GetSubresource(),
		Namespace: on.GetNamespace(), Name: on.GetName(), Project: on.GetProject(),
	}
	q, _ := r.Question(s.rules, x.Registry()) // The question without permission already represents the error.
	return q
}

// needsNamespace reports whether a question names no namespace although its objects are in namespaces.
func (s *server) needsNamespace(q authz.Query) bool {
	return q.Namespace == "" && s.rules.InNamespaces(q.Type)
}

func subjectFrom(s *accessv1.Subject) authz.Subject {
	return authz.Subject{User: s.GetUser(), Account: s.GetServiceAccountUid(), Groups: s.GetGroups()}
}

func nameMessage(r authz.Ref) *accessv1.Name {
	return &accessv1.Name{Namespace: r.Namespace, Name: r.Name}
}

// optionalName returns the name, or nil if it is empty.
func optionalName(r authz.Ref) *accessv1.Name {
	if r.Name == "" {
		return nil
	}
	return nameMessage(r)
}

func placeMessage(p authz.Scope) *accessv1.Place {
	return &accessv1.Place{Type: p.Type, Object: optionalName(p.Ref), All: p.All}
}

// principalMessage converts a principal. The numbers of both enumerations are equal.
func principalMessage(p authz.Principal) *accessv1.Principal {
	return &accessv1.Principal{Kind: accessv1.Principal_Kind(p.Sort), Name: optionalName(p.Ref), Uid: p.UID}
}

func grantMessage(p authz.Proof) *accessv1.Grant {
	return &accessv1.Grant{
		Binding: nameMessage(p.Binding), Role: nameMessage(p.Role), Principal: principalMessage(p.Principal), At: placeMessage(p.At),
	}
}

func holderMessage(h authz.Holder) *accessv1.Holder {
	return &accessv1.Holder{Principal: principalMessage(h.Principal), Grant: grantMessage(h.Why), Membership: optionalName(h.Membership)}
}

func rightMessage(x *authz.Index, r authz.Right) *accessv1.Right {
	return &accessv1.Right{Grant: grantMessage(r.Why), Membership: optionalName(r.Membership), Permissions: x.Permissions(r.Why.Role, r.Why.At)}
}

func gainMessage(g authz.Gain) *accessv1.Gain {
	return &accessv1.Gain{
		Subject: &accessv1.BindingSubject{Kind: g.Subject.Kind, Name: g.Subject.Name, Namespace: g.Subject.Namespace, Uid: g.Subject.UID},
		Absent:  g.Absent, Permissions: g.Permissions,
	}
}

func missingMessage(m authz.Missing) *accessv1.Missing {
	missing := &accessv1.Missing{Role: optionalName(m.Role), Permission: m.Permission}
	if m.At.Type != "" {
		missing.At = placeMessage(m.At)
	}
	return missing
}

func resourceMessage(registry *iam.Registry, k *iam.Kind) *accessv1.ProtectedResource {
	m := &accessv1.ProtectedResource{
		Name: k.Resource.Name, Type: k.Type, Plural: k.Resource.Spec.Plural, Permissions: k.Permissions,
		Parents: toMessages(k.Parents, func(parent *iam.Kind) string { return parent.Type }),
	}
	if f := registry.Finding(k.Resource.Name); f.Reason != iamv1alpha1.IAMSystemConfigured {
		m.Reason, m.Message = f.Reason, f.Message
	}
	return m
}

// joinKey joins parts so that the order of keys is the order of the parts.
func joinKey(parts ...string) string { return strings.Join(parts, "\x00") }

func principalKey(p authz.Principal) string {
	return joinKey(strconv.Itoa(int(p.Sort)), p.Namespace, p.Name, p.UID)
}

func holderKey(h authz.Holder) string { return principalKey(h.Principal) }

func rightKey(r authz.Right) string {
	all := "1"
	if r.Why.At.All {
		all = "0"
	}
	return joinKey(r.Why.At.Type, all, r.Why.At.Namespace, r.Why.At.Name, r.Why.Role.Namespace, r.Why.Role.Name, principalKey(r.Why.Principal))
}
