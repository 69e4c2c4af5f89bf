// Package natsauth is the one table of the rights of services on NATS. The configuration in deploy/base/nats is
// generated from it. A service has these rights and no others wherever it runs: in a cluster, in `entail up`, or in a
// test.
package natsauth

import (
	"strings"

	"github.com/entail-dev/entail/services/internal/topology"
)

//go:generate go run ../cmd/generate-nats ../../../deploy/base/nats/nats.conf

// Users that are not services.
const (
	// Admin is for people. It may do everything with the streams.
	Admin = "admin"
	// System sees the servers, and no streams.
	System = "sys"
)

// User is a service as a NATS user, and has its name.
type User struct {
	Service string
	// Publish lists the subjects that it may publish to, which include all requests to JetStream. Deny lists
	// exceptions.
	Publish, Deny []Right
}

// Right is a right on subjects with its reason.
type Right struct {
	Why      string
	Subjects []string
}

// Subscribe returns the only subject that the user may subscribe to: the answers to its own requests.
func (u User) Subscribe() string { return topology.InboxPrefix(u.Service) + ".>" }

// Variable returns the name of the variable with the password of a user.
func Variable(user string) string {
	return "NATS_PASSWORD_" + strings.ToUpper(strings.ReplaceAll(user, "-", "_"))
}

func subjectsRight(why string, subjects ...string) Right { return Right{why, subjects} }

// prefixNames returns prefix followed by each name.
func prefixNames(prefix string, names ...string) []string {
	var subjects []string
	for _, name := range names {
		subjects = append(subjects, prefix+name)
	}
	return subjects
}
