// Package permission is the one table of what each service may do on the bus. The configuration of
// NATS in deploy/base/nats is generated from it, and wherever a service runs, in a cluster, in
// `entail up` or in a test, it has these rights and no others.
package permission

import (
	"strings"

	"github.com/entail-dev/entail/services/internal/topology"
)

//go:generate go run ../cmd/generate-nats ../../../deploy/base/nats/nats.conf

// Users beside those of services.
const (
	// Admin is a person, who may do everything with the streams.
	Admin = "admin"
	// System sees the servers, and no streams.
	System = "sys"
)

// User is a service on the bus, and has its name.
type User struct {
	Service string
	// Publish are the subjects it may send to, which include every request to JetStream; Deny those
	// of them that it may not.
	Publish, Deny []Right
}

// Right is on some subjects, and why.
type Right struct {
	Why      string
	Subjects []string
}

// Subscribe is the only subject that the user may listen on: answers to its own requests.
func (u User) Subscribe() string { return topology.InboxPrefix(u.Service) + ".>" }

// Variable is what the configuration calls the password of a user.
func Variable(user string) string {
	return "NATS_PASSWORD_" + strings.ToUpper(strings.ReplaceAll(user, "-", "_"))
}

func may(why string, subjects ...string) Right { return Right{why, subjects} }

// each is the subjects that a prefix makes of names.
func each(prefix string, names ...string) []string {
	var subjects []string
	for _, name := range names {
		subjects = append(subjects, prefix+name)
	}
	return subjects
}
