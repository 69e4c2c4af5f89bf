// Package natsauth lists the rights of services on NATS in one place. The configuration in deploy/base/nats is
// generated from this list. A service has these rights and no others wherever it runs: in a cluster, in `entail up`,
// or in a test.
package natsauth

import (
	"strings"

	"github.com/entail-dev/entail/services/internal/topology"
)

// Users that are not services.
const (
	// Admin is for operators. It has all rights on the streams.
	Admin = "admin"
	// System can read the state of the servers. It has no rights on the streams.
	System = "sys"
)

// ServiceUser is the NATS user of one service; it has the name of the service.
type ServiceUser struct {
	Service string
	// Publish lists the subjects to which the user may publish. These include the requests to JetStream. Deny lists
	// exceptions.
	Publish, Deny []SubjectRight
}

// SubjectRight is a right on subjects, with its reason.
type SubjectRight struct {
	Why      string
	Subjects []string
}

// SubscribeSubject returns the only subject to which the user may subscribe. It carries the answers to the user's
// requests.
func (u ServiceUser) SubscribeSubject() string { return topology.InboxPrefix(u.Service) + ".>" }

// PasswordVariable returns the name of the variable with the password of a user.
func PasswordVariable(user string) string {
	return "NATS_PASSWORD_" + strings.ToUpper(strings.ReplaceAll(user, "-", "_"))
}

func newSubjectRight(reason string, subjects ...string) SubjectRight {
	return SubjectRight{reason, subjects}
}

// prefixNames returns each name with the prefix.
func prefixNames(prefix string, names ...string) []string {
	var subjects []string
	for _, name := range names {
		subjects = append(subjects, prefix+name)
	}
	return subjects
}
