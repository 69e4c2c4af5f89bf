// Package natsauth is the one table of the rights of services on NATS. The configuration in deploy/base/nats is
// generated from it. A service has these rights and no others wherever it runs: in a cluster, in `entail up`, or in a
// test.
package natsauth

import (
	"strings"

	"github.com/entail-dev/entail/services/internal/topology"
)

// Users that are not services.
const (
	// Admin is for people. It may do everything with the streams.
	Admin = "admin"
	// System sees the servers, and no streams.
	System = "sys"
)

// ServiceUser is a service as a NATS user, and has its name.
type ServiceUser struct {
	Service string
	// Publish lists the subjects that it may publish to, which include all requests to JetStream. Deny lists
	// exceptions.
	Publish, Deny []SubjectRight
}

// SubjectRight is a right on subjects with its reason.
type SubjectRight struct {
	Why      string
	Subjects []string
}

// SubscribeSubject returns the only subject that the user may subscribe to: the answers to its own requests.
func (u ServiceUser) SubscribeSubject() string { return topology.InboxPrefix(u.Service) + ".>" }

// PasswordVariable returns the name of the variable with the password of a user.
func PasswordVariable(user string) string {
	return "NATS_PASSWORD_" + strings.ToUpper(strings.ReplaceAll(user, "-", "_"))
}

func newRight(why string, subjects ...string) SubjectRight { return SubjectRight{why, subjects} }

// prefixNames returns prefix followed by each name.
func prefixNames(prefix string, names ...string) []string {
	var subjects []string
	for _, name := range names {
		subjects = append(subjects, prefix+name)
	}
	return subjects
}
