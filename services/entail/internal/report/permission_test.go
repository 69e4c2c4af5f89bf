package report_test

import (
	"testing"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func named(namespace, name string) *accessv1.Name {
	return &accessv1.Name{Namespace: namespace, Name: name}
}

// onAcme is the role reader on an organization, for a group.
func onAcme() *accessv1.Grant {
	return &accessv1.Grant{
		Binding: named("default", "on-acme"), Role: named("default", "reader"),
		Principal: &accessv1.Principal{Kind: accessv1.Principal_KIND_GROUP, Name: named("default", "staff"), Uid: "1"},
		At:        &accessv1.Place{Type: "r/Organization", Object: named("", "acme")},
	}
}

func TestAccessIsToldInALineOrATree(t *testing.T) {
	same(t, write(t, func(p report.Page) { p.Access(&accessv1.CheckAccessResponse{Allowed: true, Grant: onAcme()}) }), `
yes: Role default/reader on Organization acme by PolicyBinding default/on-acme
`)
	same(t, write(t, func(p report.Page) { p.Access(&accessv1.CheckAccessResponse{}) }), `
no: no ProtectedResource registers this
`)
	same(t, write(t, func(p report.Page) {
		p.AccessTree(&accessv1.ExplainAccessResponse{
			Allowed: true, Permission: "r/projects.get", Grant: onAcme(), Membership: named("default", "alice-staff"),
			Inherits: []*accessv1.Name{named("default", "reader"), named("default", "viewer")},
			Path:     []*accessv1.Place{{Type: "r/Project", Object: named("", "web")}, onAcme().GetAt()},
		})
	}), `
yes: it takes r/projects.get
└─ Project web
   └─ Organization acme
      └─ PolicyBinding default/on-acme
         └─ for Group default/staff (GroupMembership default/alice-staff)
└─ Role default/reader
   └─ Role default/viewer
`)
	same(t, write(t, func(p report.Page) {
		p.AccessTree(&accessv1.ExplainAccessResponse{
			Permission: "r/projects.delete", Unregistered: true, NoSubject: true, NoObject: true, Lacking: []*accessv1.Grant{onAcme()},
		})
	}), `
no: it takes r/projects.delete
That cannot be held there.
There is no such user or account who may act.
There is no such object, as far as objects of its kind are followed.
They have Role default/reader on Organization acme by PolicyBinding default/on-acme, which does not give it.
`)
}

func TestWhoCanAndWhatCanAreTables(t *testing.T) {
	all := onAcme()
	all.At = &accessv1.Place{Type: "r/Project", All: true}
	same(t, write(t, func(p report.Page) {
		p.WhoCan(&accessv1.WhoCanResponse{Truncated: true, Holders: []*accessv1.Holder{
			{Principal: &accessv1.Principal{Kind: accessv1.Principal_KIND_USER, Name: named("", "alice"), Uid: "2"}, Grant: onAcme(), Membership: named("default", "m")},
			{Principal: &accessv1.Principal{Kind: accessv1.Principal_KIND_CORE_SERVICE_ACCOUNT, Uid: "3"}, Grant: all},
		}})
	}), `
SUBJECT                 ROLE             ON                  BY BINDING
User alice              default/reader   Organization acme   default/on-acme (GroupMembership default/m)
core ServiceAccount 3   default/reader   every Project       default/on-acme
There is more.
`)
	same(t, write(t, func(p report.Page) {
		p.WhatCan(&accessv1.WhatCanResponse{Rights: []*accessv1.Right{{Grant: all, Permissions: []string{"r/projects.get", "r/projects.list"}}}})
	}), `
ON              ROLE             BY BINDING        PERMISSIONS
every Project   default/reader   default/on-acme   r/projects.get, r/projects.list
`)
	same(t, write(t, func(p report.Page) { p.WhoCan(&accessv1.WhoCanResponse{Permission: "r/projects.get"}) }), `
Nobody: it takes r/projects.get.
`)
	same(t, write(t, func(p report.Page) { p.WhatCan(&accessv1.WhatCanResponse{}) }), `
Nothing.
`)
}
