package report_test

import (
	"testing"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func TestWriteRoleExplanation(t *testing.T) {
	alice, state := &inferencev1.Subject{Kind: "User", Name: "alice"}, inferencev1.BindingState_BINDING_STATE_EXPLICIT
	m := &inferencev1.ExplainRoleResponse{Held: true, Truncated: true, Reasons: []*inferencev1.Reason{
		{Binding: "ClusterRoleBinding/all", Subject: &inferencev1.Subject{Kind: "Group", Name: "team"}, State: state, Role: role("writer")},
		{Binding: "b", Subject: alice, State: inferencev1.BindingState_BINDING_STATE_PENDING, Role: role("admin"), Path: []*inferencev1.Step{
			{Rules: []string{"r1"}, From: role("admin"), To: role("writer")},
		}},
	}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteRoleExplanation(nil, m) }), `
group:team has it by ClusterRoleBinding all (explicit).
user:alice has it by RoleBinding b (pending), whose role implies it:
  admin implies writer by rule r1
There is more.
`)
	request := &inferencev1.ExplainRoleRequest{Namespace: "team-a", Subject: alice, Role: role("writer"), Groups: []string{"dev", "ops"}}
	no := &inferencev1.ExplainRoleResponse{Considered: &inferencev1.Considered{Rules: 2}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteRoleExplanation(request, no) }), `
user:alice does not hold writer in namespace team-a.
Groups of the subject by --group: dev, ops.
Considered: 0 RoleBindings and 2 rules of namespace team-a, and 0 ClusterRoleBindings.
Not considered: members of groups, PolicyBindings of IAM, and other roles with the same permissions.
`)
}

func TestWriteEffectiveRoles(t *testing.T) {
	m := &inferencev1.ListEffectiveRolesResponse{Roles: []*inferencev1.EffectiveRole{
		{Role: role("writer"), Origin: inferencev1.Origin_ORIGIN_IMPLIED, Bindings: []string{"b"}},
		{Role: &inferencev1.Role{Kind: "ClusterRole", Name: "view"}, Origin: inferencev1.Origin_ORIGIN_EXPLICIT, Bindings: []string{"ClusterRoleBinding/all"}},
	}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteEffectiveRoles(nil, m) }), `
ROLE               HOW        BY BINDING
writer             implied    b
clusterrole/view   explicit   ClusterRoleBinding/all
`)
	request := &inferencev1.ListEffectiveRolesRequest{Namespace: "team-a", Subject: &inferencev1.Subject{Kind: "User", Name: "alice"}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteEffectiveRoles(request, &inferencev1.ListEffectiveRolesResponse{}) }), `
user:alice holds no role in namespace team-a.
Groups of the subject: those of every user alone; --group adds others.
Considered: 0 RoleBindings and 0 rules of namespace team-a, and 0 ClusterRoleBindings.
Not considered: members of groups, PolicyBindings of IAM, and other roles with the same permissions.
`)
	m.Roles, m.SubjectUnnamed = m.GetRoles()[1:], true
	expectEqual(t, write(t, func(p report.Printer) { p.WriteEffectiveRoles(request, m) }), `
ROLE               HOW        BY BINDING
clusterrole/view   explicit   ClusterRoleBinding/all
No binding names user:alice itself: these roles are those of its groups. Check the name.
`)
}

func TestWriteDriftListsDifferences(t *testing.T) {
	change := func(name, source string) []*inferencev1.BindingChange {
		return []*inferencev1.BindingChange{{Name: name, Source: source, Role: role("writer")}}
	}
	m := &inferencev1.CheckDriftResponse{Missing: change("ir-1", "b"), Extra: change("ir-2", "ir-2"), Altered: change("ir-3", "b"), Conflicts: change("ir-4", "c")}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteDrift(m) }), `
ROLEBINDING   BECAUSE OF      GRANTS   IS
ir-1          b               writer   missing
ir-2          nothing known   writer   extra
ir-3          b               writer   altered
ir-4          c               writer   its name is taken
`)
	expectEqual(t, write(t, func(p report.Printer) {
		p.WriteDrift(&inferencev1.CheckDriftResponse{InStep: true, Unjudged: []string{"a"}})
	}),
		"Rule a was written while no webhook checked the authors of rules.\nAll is as it should be.\n")
}

func TestWriteWatchMessagePrintsOneLineEach(t *testing.T) {
	m := &inferencev1.WatchInferencesResponse{
		Type:     inferencev1.WatchInferencesResponse_TYPE_SNAPSHOT_END,
		Upserted: []*inferencev1.Inference{{Namespace: "team-a", Parent: role("admin"), ChildRoles: roles("writer"), ChildRolesTotal: 2}},
		Removed:  []*inferencev1.InferenceKey{{Namespace: "team-b", Parent: role("x")}},
	}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteWatchMessage(m) }), `
team-a: admin implies writer and 1 more
team-b: x implies nothing any more
That is all so far.
`)
}
