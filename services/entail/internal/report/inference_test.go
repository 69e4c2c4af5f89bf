package report_test

import (
	"testing"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/entail/internal/report"
)

func role(name string) *inferencev1.Role { return &inferencev1.Role{Kind: "Role", Name: name} }

func roles(names ...string) []*inferencev1.Role {
	list := make([]*inferencev1.Role, len(names))
	for i, name := range names {
		list[i] = role(name)
	}
	return list
}

func inference(parent string, direct, all []string) *inferencev1.Inference {
	return &inferencev1.Inference{Namespace: "team-a", Parent: role(parent), Direct: roles(direct...), ChildRoles: roles(all...)}
}

// example returns the example of the design document.
func example() *inferencev1.ListInferencesResponse {
	return &inferencev1.ListInferencesResponse{Inferences: []*inferencev1.Inference{
		inference("admin", []string{"developer", "reviewer"}, []string{"developer", "noob", "pro", "reviewer", "writer"}),
		inference("developer", []string{"writer"}, []string{"noob", "pro", "writer"}),
		inference("writer", []string{"noob", "pro"}, []string{"noob", "pro"}),
	}}
}

func TestWriteInferencesAsTableOrTree(t *testing.T) {
	expectEqual(t, write(t, func(p report.Printer) { p.WriteInferences(example()) }), `
NAMESPACE   ROLE        IMPLIES
team-a      admin       developer, noob, pro, reviewer, writer
team-a      developer   noob, pro, writer
team-a      writer      noob, pro
`)
	expectEqual(t, write(t, func(p report.Printer) { p.WriteInferenceTree(example()) }), `
team-a
  admin
  ├─ developer
  │  └─ writer
  │     ├─ noob
  │     └─ pro
  └─ reviewer
`)
	for _, f := range []func(report.Printer, *inferencev1.ListInferencesResponse){report.Printer.WriteInferences, report.Printer.WriteInferenceTree} {
		expectEqual(t, write(t, func(p report.Printer) { f(p, &inferencev1.ListInferencesResponse{}) }), "No role implies another.\n")
	}
}

func TestInferenceTreeStopsAtCycles(t *testing.T) {
	m := &inferencev1.ListInferencesResponse{Inferences: []*inferencev1.Inference{
		inference("a", []string{"b"}, []string{"b"}),
		inference("b", []string{"a"}, []string{"a"}),
		inference("diamond", []string{"left", "right"}, []string{"end", "left", "low", "right"}),
		inference("left", []string{"end"}, []string{"end", "low"}),
		inference("right", []string{"end"}, []string{"end", "low"}),
		inference("end", []string{"low"}, []string{"low"}),
	}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteInferenceTree(m) }), `
team-a
  diamond
  ├─ left
  │  └─ end
  │     └─ low
  └─ right
     └─ end (above)
  a
  └─ b
     └─ a (above)
`)
}

func TestWriteBindingExplanation(t *testing.T) {
	alice := []*inferencev1.Subject{{Kind: "User", Name: "alice"}, {Kind: "ServiceAccount", Namespace: "other", Name: "bot"}}
	generated := &inferencev1.ExplainBindingResponse{
		Name: "ir-b-writer-1", Role: role("writer"), Subjects: alice, Generated: true, Source: "b",
		State: inferencev1.BindingState_BINDING_STATE_SYNCED,
		Reasons: []*inferencev1.Reason{{Binding: "b", Path: []*inferencev1.Step{
			{Rules: []string{"r1"}, From: role("admin"), To: role("developer")},
			{Rules: []string{"r2", "r3"}, From: role("developer"), To: role("writer")},
		}}},
	}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteBindingExplanation(generated) }), `
RoleBinding ir-b-writer-1 grants writer to user:alice, serviceaccount:other/bot.
It was generated because of RoleBinding b (synced):
  admin implies developer by rule r1
  developer implies writer by rule r2, r3
`)
	source := &inferencev1.ExplainBindingResponse{
		Name: "b", Role: role("admin"), Subjects: alice[:1], Truncated: true,
		Implied: []*inferencev1.ImpliedBinding{
			{Name: "ir-1", Role: role("developer"), Path: roles("admin", "developer"), State: inferencev1.BindingState_BINDING_STATE_PENDING},
			{
				Name: "ir-2", Role: &inferencev1.Role{Kind: "ClusterRole", Name: "view"}, Path: roles("admin"),
				State: inferencev1.BindingState_BINDING_STATE_CONFLICT, Message: "not ours",
			},
		},
	}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteBindingExplanation(source) }), `
RoleBinding b grants admin to user:alice.
IMPLIES            BY                   ROLEBINDING   STATE
developer          admin -> developer   ir-1          pending
clusterrole/view   admin                ir-2          conflict: not ours
There is more.
`)
	alone := &inferencev1.ExplainBindingResponse{Name: "b", Role: role("admin")}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteBindingExplanation(alone) }), `
RoleBinding b grants admin to nobody.
Nothing follows from it.
`)
}

func TestWriteRoleHoldersListsBindings(t *testing.T) {
	m := &inferencev1.WhoHasRoleResponse{Holders: []*inferencev1.Holder{
		{Subject: &inferencev1.Subject{Kind: "Group", Name: "team"}, Origin: inferencev1.Origin_ORIGIN_BOTH, Bindings: []string{"b", "c"}},
		{Subject: &inferencev1.Subject{Kind: "User", Name: "alice"}, Origin: inferencev1.Origin_ORIGIN_IMPLIED, Bindings: []string{"b"}},
	}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteRoleHolders(nil, m) }), `
SUBJECT      HOW       BY BINDING
group:team   both      b, c
user:alice   implied   b
`)
	request := &inferencev1.WhoHasRoleRequest{Namespace: "team-a", Role: role("writer")}
	none := &inferencev1.WhoHasRoleResponse{Considered: &inferencev1.Considered{RoleBindings: 1, ClusterRoleBindings: 12}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteRoleHolders(request, none) }), `
Nobody holds writer in namespace team-a.
Considered: 1 RoleBinding and 0 rules of namespace team-a, and 12 ClusterRoleBindings.
Not considered: members of groups, PolicyBindings of IAM, and other roles with the same permissions.
`)
	m.Holders, m.RoleMissing = m.GetHolders()[1:], true
	expectEqual(t, write(t, func(p report.Printer) { p.WriteRoleHolders(request, m) }), `
SUBJECT      HOW       BY BINDING
user:alice   implied   b
writer does not exist: it gives no permission until it is created.
`)
}

func TestWriteRolePreviewListsGainsAndLosses(t *testing.T) {
	m := &inferencev1.Preview{
		Created: 1, Deleted: 2, Writes: 5,
		Subjects: []*inferencev1.SubjectChange{
			{Subject: &inferencev1.Subject{Kind: "User", Name: "alice"}, Gained: roles("writer"), Lost: roles("noob", "pro")},
		},
		Bindings:       []*inferencev1.BindingChange{{Change: inferencev1.BindingChange_CHANGE_CONFLICT, Name: "ir-9"}},
		NewCycles:      []*inferencev1.Cycle{{Roles: roles("a", "b")}},
		ResolvedCycles: []*inferencev1.Cycle{{Roles: roles("c", "d")}},
		Refusals:       []*inferencev1.Refusal{{Name: "bad", Reason: "ProhibitedRole", Message: "choose another child"}},
	}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteRolePreview(m) }), `
SUBJECT      GAINS    LOSES
user:alice   writer   noob, pro
1 RoleBinding to create, 0 to change, 2 to delete; 5 writes to the API server.
These roles would imply each other: a, b
These roles would no longer imply each other: c, d
RoleBinding ir-9 would stay as it is: another object has this name.
Rule bad would not count (ProhibitedRole): choose another child
`)
}

func TestListsCountOmittedItems(t *testing.T) {
	in := inference("a", []string{"b"}, []string{"b"})
	in.ChildRolesTotal, in.Truncated = 7, true
	m := &inferencev1.ListInferencesResponse{Inferences: []*inferencev1.Inference{in}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteInferences(m) }), `
NAMESPACE   ROLE   IMPLIES
team-a      a      b and 6 more
`)
	expectEqual(t, write(t, func(p report.Printer) { p.WriteInferenceTree(m) }), `
team-a
  a (not all that it implies)
  └─ b
`)
	holders := &inferencev1.WhoHasRoleResponse{Holders: []*inferencev1.Holder{{
		Subject: &inferencev1.Subject{Kind: "User", Name: "u"}, Origin: inferencev1.Origin_ORIGIN_IMPLIED, Bindings: []string{"B"}, BindingsTotal: 2,
	}}}
	expectEqual(t, write(t, func(p report.Printer) { p.WriteRoleHolders(nil, holders) }), `
SUBJECT   HOW       BY BINDING
user:u    implied   B and 1 more
`)
}
