package report_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func newName(namespace, name string) *accessv1.Name {
	return &accessv1.Name{Namespace: namespace, Name: name}
}

// grantOnOrganization returns a grant of role reader on an organization.
func grantOnOrganization() *accessv1.Grant {
	return &accessv1.Grant{
		Binding: newName("default", "on-acme"), Role: newName("default", "reader"),
		Principal: &accessv1.Principal{Kind: accessv1.Principal_KIND_GROUP, Name: newName("default", "staff"), Uid: "1"},
		At:        &accessv1.Place{Type: "r/Organization", Object: newName("", "acme")},
	}
}

func TestWriteAccessExplanationAsLineOrTree(t *testing.T) {
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteAccessAnswer(&accessv1.CheckAccessResponse{Allowed: true, Grant: grantOnOrganization()})
	}), `
yes: Role default/reader on Organization.r acme by PolicyBinding default/on-acme
`)
	expectEqual(t, write(t, func(p report.Printer) { p.WriteAccessAnswer(&accessv1.CheckAccessResponse{}) }), `
no: no ProtectedResource registers this permission; entail iam kinds lists the permissions
`)
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteAccessExplanation(&accessv1.ExplainAccessResponse{
			Allowed: true, Permission: "r/projects.get", Grant: grantOnOrganization(), Membership: newName("default", "alice-staff"),
			Inherits: []*accessv1.Name{newName("default", "reader"), newName("default", "viewer")},
			Path:     []*accessv1.Place{{Type: "r/Project", Object: newName("", "web")}, grantOnOrganization().GetAt()},
		})
	}), `
yes: this requires the permission r/projects.get
├─ Project.r web
│  └─ Organization.r acme
│     └─ PolicyBinding default/on-acme
│        └─ for Group default/staff (GroupMembership default/alice-staff)
└─ Role default/reader
   └─ Role default/viewer
`)
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteAccessExplanation(&accessv1.ExplainAccessResponse{
			Permission: "r/projects.delete", Unregistered: true, NoSubject: true, NoObject: true, Truncated: true, Lacking: []*accessv1.Grant{grantOnOrganization()},
		})
	}), `
no: this requires the permission r/projects.delete
No role gives this permission on an object of this kind; entail iam kinds lists the permissions of each kind.
No such user or account exists, or it is inactive.
There is no such object, as far as objects of its kind are followed.
It has more owners than are followed: roles on the farthest owners do not count.
The subject has Role default/reader on Organization.r acme by PolicyBinding default/on-acme, which does not give it.
`)
}

func TestWriteAccessExplanationReportsMissingRole(t *testing.T) {
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteAccessExplanation(&accessv1.ExplainAccessResponse{Permission: "r/projects.get"})
	}), `
no: this requires the permission r/projects.get
The subject has no role on it or above it. A role that was given under another uid does not count.
`)
}

func TestWriteAccessHoldersAndSubjectRightsPrintTables(t *testing.T) {
	all := grantOnOrganization()
	all.At = &accessv1.Place{Type: "r/Project", All: true}
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteAccessHolders(&accessv1.WhoCanResponse{Truncated: true, Holders: []*accessv1.Holder{
			{Principal: &accessv1.Principal{Kind: accessv1.Principal_KIND_USER, Name: newName("", "alice"), Uid: "2"}, Grant: grantOnOrganization(), Membership: newName("default", "m")},
			{Principal: &accessv1.Principal{Kind: accessv1.Principal_KIND_CORE_SERVICE_ACCOUNT, Uid: "3"}, Grant: all},
		}})
	}), `
SUBJECT                 ROLE             ON                    BY BINDING
User alice              default/reader   Organization.r acme   default/on-acme (GroupMembership default/m)
core ServiceAccount 3   default/reader   every Project.r       default/on-acme
There is more.
`)
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteSubjectRights(&accessv1.WhatCanResponse{Rights: []*accessv1.Right{{Grant: all, Permissions: []string{"r/projects.get", "r/projects.list"}}}})
	}), `
ON                ROLE             BY BINDING        PERMISSIONS
every Project.r   default/reader   default/on-acme   r/projects: get, list
`)
	expectEqual(t, write(t, func(p report.Printer) { p.WriteAccessHolders(&accessv1.WhoCanResponse{Permission: "r/projects.get"}) }), `
Nobody: this requires the permission r/projects.get.
`)
	expectEqual(t, write(t, func(p report.Printer) { p.WriteSubjectRights(&accessv1.WhatCanResponse{}) }), `
Nothing.
`)
}

func TestPlaceTextNamesAPIGroup(t *testing.T) {
	on := func(typ, name string) *accessv1.Grant {
		return &accessv1.Grant{Role: newName("", "reader"), Binding: newName("", "b"), At: &accessv1.Place{Type: typ, Object: newName("one", name), All: name == ""}}
	}
	grants := []*accessv1.Grant{on("a.example/Node", "x"), on("b.example/Node", "x"), on("b.example/Node", ""), on("core.miloapis.com/Node", "x")}
	who, what, tree := &accessv1.WhoCanResponse{}, &accessv1.WhatCanResponse{}, &accessv1.ExplainAccessResponse{Allowed: true}
	for _, g := range grants {
		who.Holders = append(who.Holders, &accessv1.Holder{Grant: g})
		what.Rights = append(what.Rights, &accessv1.Right{Grant: g})
		tree.Path = append(tree.Path, g.GetAt())
	}
	for name, text := range map[string]string{
		"who-can":  write(t, func(p report.Printer) { p.WriteAccessHolders(who) }),
		"what-can": write(t, func(p report.Printer) { p.WriteSubjectRights(what) }),
		"explain":  write(t, func(p report.Printer) { p.WriteAccessExplanation(tree) }),
		"can-i": write(t, func(p report.Printer) {
			for _, g := range grants {
				p.WriteAccessAnswer(&accessv1.CheckAccessResponse{Allowed: true, Grant: g})
			}
		}),
	} {
		for _, want := range []string{"Node.a.example one/x", "Node.b.example one/x", "every Node.b.example", "Node one/x"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s says\n%swhere %q is expected", name, text, want)
			}
		}
	}
}

func TestWriteBindingGainsPrintsTable(t *testing.T) {
	subject := func(kind, namespace, name string) *accessv1.BindingSubject {
		return &accessv1.BindingSubject{Kind: kind, Namespace: namespace, Name: name}
	}
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteBindingGains(&accessv1.PreviewBindingResponse{NoRole: true, NoTarget: true, Gains: []*accessv1.Gain{
			{Subject: subject("User", "", "alice"), Permissions: []string{"r/projects.get", "r/projects.list", "r/trees/status.get"}},
			{Subject: subject("Group", "team-a", "staff")},
			{Subject: subject("User", "", "bob"), Absent: true},
		}})
	}), `
The Role does not exist: nobody gains anything until it is created.
The target does not exist: nobody gains anything until it is created.
SUBJECT              GAINS
User alice           r/projects: get, list; r/trees: status.get
Group team-a/staff   nothing
User bob             nothing: no active user or account has this name and uid
`)
}

func TestWriteBindingGainsReportsMissingPermission(t *testing.T) {
	at := &accessv1.Place{Type: "r/Project", All: true}
	for want, m := range map[string]*accessv1.Missing{
		"You do not have r/projects.get on ":                                     {Role: &accessv1.Name{Name: "viewer"}, Permission: "r/projects.get", At: at},
		"You do not have a role on ":                                             {At: at},
		"You do not have the permissions of role n/viewer, which does not exist": {Role: &accessv1.Name{Namespace: "n", Name: "viewer"}},
	} {
		if got := write(t, func(p report.Printer) { p.WriteBindingGains(&accessv1.PreviewBindingResponse{Lacking: m}) }); !strings.Contains(got, want) {
			t.Errorf("told is %q, want %q", got, want)
		}
	}
}

func TestWriteProtectedResourcesAndModelStatus(t *testing.T) {
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteProtectedResources(&accessv1.ListProtectedResourcesResponse{Resources: []*accessv1.ProtectedResource{
			{Type: "r/Organization", Plural: "organizations", Permissions: []string{"r/organizations.get"}},
			{Type: "r/Project", Plural: "projects", Parents: []string{"r/Organization"}, Reason: "ParentCycle", Message: "remove one"},
		}})
	}), `
TYPE             PLURAL          VERBS   BELOW            STATE
r/Organization   organizations   get                      ok
r/Project        projects                r/Organization   ParentCycle: remove one
`)
	expectEqual(t, write(t, func(p report.Printer) { p.WriteProtectedResources(&accessv1.ListProtectedResourcesResponse{}) }), "No kind is protected.\n")
	status := &accessv1.GetModelStatusResponse{Store: "iam", Kinds: 1, Permissions: 2, Types: 7, Bytes: 900, Message: "Pending: soon", Age: durationpb.New(time.Second)}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteIAMModelStatus(status) }), `
1 kind, 2 permissions: 7 types, 900 bytes in the model of Store iam.
OpenFGA does not have this model yet: Pending: soon
The data behind this answer is at most 1s old.
`)
	status.Synced, status.StoreId, status.AuthorizationModelId = true, "S", "M"
	expectEqual(t, write(t, func(p report.Printer) { p.WriteIAMModelStatus(status) }), `
1 kind, 2 permissions: 7 types, 900 bytes in the model of Store iam.
OpenFGA has it: store S, model M.
The data behind this answer is at most 1s old.
`)
}
