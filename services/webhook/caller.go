package webhook

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/rpc"
)

// subjectRequest is a request about the access of a subject.
type subjectRequest interface {
	GetSubject() *accessv1.Subject
	GetAtLeast() *accessv1.AtLeast
}

// isOwnAccessRequest reports whether a request is about the caller's own access, or that of some of the caller's groups. A request
// that waits for an object is never own, because it causes a read at the API server.
func (s *accessServer) isOwnAccessRequest(caller authenticationv1.UserInfo, request any) bool {
	question, ok := request.(subjectRequest)
	if !ok || question.GetAtLeast().GetObject() != nil {
		return false
	}
	asked, own := subjectFromMessage(question.GetSubject()), s.rules.IdentifySubject(caller)
	return (asked.User == "" || asked.User == own.User) && (asked.Account == "" || asked.Account == own.Account) &&
		!slices.ContainsFunc(asked.Groups, func(g string) bool { return !slices.Contains(own.Groups, g) })
}

// requestedSubject returns the subject of a request, or the caller if the request names none. It keeps only groups that count for
// authorization, as review.Rules.Groups defines them.
func (s *accessServer) requestedSubject(ctx context.Context, question subjectRequest) (authz.Subject, error) {
	who := subjectFromMessage(question.GetSubject())
	if who.User != "" || who.Account != "" || len(who.Groups) > 0 {
		who.Groups = s.rules.EffectiveGroups(who.Groups)
		return who, nil
	}
	caller, known := rpc.CallerFromContext(ctx)
	if !known {
		return who, rpc.InvalidError("name a subject: this server does not authenticate callers (--auth=none)")
	}
	return s.rules.IdentifySubject(caller), nil
}
