package webhook

import (
	"context"
	"slices"

	authenticationv1 "k8s.io/api/authentication/v1"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/rpc"
)

// asks is a question about somebody.
type asks interface {
	GetSubject() *accessv1.Subject
	GetAtLeast() *accessv1.AtLeast
}

// isOwn says whether a caller asks about themselves, or about some of what they are. To have an object
// looked up at the API server takes the right to ask about others.
func (s *server) isOwn(caller authenticationv1.UserInfo, request any) bool {
	question, ok := request.(asks)
	if !ok || question.GetAtLeast().GetObject() != nil {
		return false
	}
	asked, own := subject(question.GetSubject()), s.rules.Identify(caller)
	return (asked.User == "" || asked.User == own.User) && (asked.Account == "" || asked.Account == own.Account) &&
		!slices.ContainsFunc(asked.Groups, func(g string) bool { return !slices.Contains(own.Groups, g) })
}

// asked is whom a question is about: who calls, if it names nobody. Of the groups those count that count when the API server asks.
func (s *server) asked(ctx context.Context, question asks) (decide.Subject, error) {
	who := subject(question.GetSubject())
	if who.User != "" || who.Account != "" || len(who.Groups) > 0 {
		who.Groups = s.rules.Groups(who.Groups)
		return who, nil
	}
	caller, known := rpc.CallerOf(ctx)
	if !known {
		return who, rpc.Invalid("name a subject: this server asks nobody who they are (--auth=none)")
	}
	return s.rules.Identify(caller), nil
}
