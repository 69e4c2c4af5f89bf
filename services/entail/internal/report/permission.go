package report

import (
	"cmp"
	"strings"
	"time"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
)

// WriteAccessAnswer prints whether a subject has access, and by which grant.
func (p Printer) WriteAccessAnswer(m *accessv1.CheckAccessResponse) {
	if m.GetAllowed() {
		p.writeLinef("yes: %s", grantText(m.GetGrant()))
		return
	}
	text := missingPermissionText(m.GetPermission())
	if m.GetPermission() != "" {
		text += "; entail explain access shows what is missing"
	}
	p.writeLinef("no: %s", text)
}

func missingPermissionText(permission string) string {
	if permission == "" {
		return "no ProtectedResource registers this permission; entail iam kinds lists the permissions"
	}
	return "this requires the permission " + permission
}

// WriteAccessExplanation explains why a subject has access, or what it lacks.
func (p Printer) WriteAccessExplanation(m *accessv1.ExplainAccessResponse) {
	if !m.GetAllowed() {
		p.writeMissingAccess(m)
		return
	}
	p.writeLinef("yes: this requires the permission %s", m.GetPermission())
	var levels []string
	for _, place := range m.GetPath() {
		levels = append(levels, placeText(place))
	}
	levels = append(levels, "PolicyBinding "+nameText(m.GetGrant().GetBinding()))
	levels = append(levels, "for "+principalText(m.GetGrant().GetPrincipal())+membershipText(m.GetMembership()))
	var roles []string
	for _, role := range m.GetInherits() {
		roles = append(roles, "Role "+nameText(role))
	}
	p.drawNestedLines(levels, len(roles) == 0)
	p.drawNestedLines(roles, true)
}

// drawNestedLines draws each line as the child of the line before. Another such list follows, unless this is the last one.
func (p Printer) drawNestedLines(lines []string, isLast bool) {
	own, below := branch, branchStem
	if isLast {
		own, below = lastBranch, blankStem
	}
	for i, line := range lines {
		if i > 0 {
			own = below + strings.Repeat(blankStem, i-1) + lastBranch
		}
		p.writeLinef("%s%s", own, line)
	}
}

func (p Printer) writeMissingAccess(m *accessv1.ExplainAccessResponse) {
	p.writeLinef("no: %s", missingPermissionText(m.GetPermission()))
	if m.GetUnregistered() && m.GetPermission() != "" {
		p.writeLinef("No role gives this permission on an object of this kind; entail iam kinds lists the permissions of each kind.")
	}
	if m.GetNoSubject() {
		p.writeLinef("No such user or account exists, or it is inactive.")
	}
	if m.GetNoObject() {
		p.writeLinef("There is no such object, as far as objects of its kind are followed.")
	}
	if m.GetTruncated() {
		p.writeLinef("It has more owners than are followed: roles on the farthest owners do not count.")
	}
	if len(m.GetLacking()) == 0 && !m.GetUnregistered() && !m.GetNoSubject() {
		p.writeLinef("The subject has no role on it or above it. A role that was given under another uid does not count.")
	}
	for _, g := range m.GetLacking() {
		p.writeLinef("The subject has %s, which does not give it.", grantText(g))
	}
}

// WriteAccessHolders lists the subjects that have access.
func (p Printer) WriteAccessHolders(m *accessv1.WhoCanResponse) {
	if len(m.GetHolders()) == 0 {
		p.writeLinef("Nobody: %s.", missingPermissionText(m.GetPermission()))
		return
	}
	rows := make([]tableRow, len(m.GetHolders()))
	for i, h := range m.GetHolders() {
		rows[i] = tableRow{cells: []string{
			principalText(h.GetPrincipal()), nameText(h.GetGrant().GetRole()), placeText(h.GetGrant().GetAt()),
			nameText(h.GetGrant().GetBinding()) + membershipText(h.GetMembership()),
		}}
	}
	p.writeTable([]string{"SUBJECT", headRole, "ON", "BY BINDING"}, rows)
	p.writeMoreNote(m.GetTruncated())
}

// WriteSubjectRights lists the access that a subject has.
func (p Printer) WriteSubjectRights(m *accessv1.WhatCanResponse) {
	if len(m.GetRights()) == 0 {
		p.writeLinef("Nothing.")
		return
	}
	rows := make([]tableRow, len(m.GetRights()))
	for i, r := range m.GetRights() {
		rows[i] = tableRow{cells: []string{
			placeText(r.GetGrant().GetAt()), nameText(r.GetGrant().GetRole()), nameText(r.GetGrant().GetBinding()) + membershipText(r.GetMembership()),
			permissionsText(r.GetPermissions()),
		}}
	}
	p.writeTable([]string{"ON", headRole, "BY BINDING", "PERMISSIONS"}, rows)
}

// WriteBindingGains lists the access that a PolicyBinding would give.
func (p Printer) WriteBindingGains(m *accessv1.PreviewBindingResponse) {
	if m.GetNoRole() {
		p.writeLinef("The Role does not exist: nobody gains anything until it is created.")
	}
	if m.GetNoTarget() {
		p.writeLinef("The target does not exist: nobody gains anything until it is created.")
	}
	rows := make([]tableRow, len(m.GetGains()))
	for i, g := range m.GetGains() {
		gains := permissionsText(g.GetPermissions())
		switch {
		case g.GetAbsent():
			gains = "nothing: no active user or account has this name and uid"
		case gains == "":
			gains = "nothing"
		}
		name := nameText(&accessv1.Name{Namespace: g.GetSubject().GetNamespace(), Name: g.GetSubject().GetName()})
		rows[i] = tableRow{cells: []string{g.GetSubject().GetKind() + " " + name, gains}}
	}
	p.writeTable([]string{"SUBJECT", "GAINS"}, rows)
	if m := m.GetLacking(); m != nil {
		p.writeLinef("You do not have %s: the API server would refuse this binding from you, unless you may escalate.", missingForCallerText(m))
	}
}

// missingForCallerText returns the permission or role that the caller lacks. It may be one that cannot be held yet.
func missingForCallerText(m *accessv1.Missing) string {
	switch {
	case m.GetPermission() != "":
		return m.GetPermission() + " on " + placeText(m.GetAt())
	case m.GetAt() != nil:
		return "a role on " + placeText(m.GetAt()) + ", a kind that no ProtectedResource registers"
	}
	return "the permissions of role " + nameText(m.GetRole()) + ", which does not exist"
}

// WriteProtectedResources lists the protected kinds.
func (p Printer) WriteProtectedResources(m *accessv1.ListProtectedResourcesResponse) {
	if len(m.GetResources()) == 0 {
		p.writeLinef("No kind is protected.")
		return
	}
	rows := make([]tableRow, len(m.GetResources()))
	for i, r := range m.GetResources() {
		state, ink := "ok", good
		if r.GetReason() != "" {
			state, ink = r.GetReason()+": "+r.GetMessage(), bad
		}
		rows[i] = tableRow{cells: []string{r.GetType(), r.GetPlural(), verbsText(r.GetPermissions()), strings.Join(r.GetParents(), ", "), state}, ink: ink}
	}
	p.writeTable([]string{"TYPE", "PLURAL", "VERBS", "BELOW", headState}, rows)
}

// WriteIAMModelStatus prints the size of the IAM model, and whether OpenFGA has it.
func (p Printer) WriteIAMModelStatus(m *accessv1.GetModelStatusResponse) {
	p.writeLinef("%s, %s: %s, %s in the model of Store %s.", countText(m.GetKinds(), "kind"), countText(m.GetPermissions(), "permission"),
		countText(m.GetTypes(), "type"), countText(m.GetBytes(), "byte"), m.GetStore())
	switch {
	case m.GetSynced():
		p.writeLinef("OpenFGA has it: store %s, model %s.", m.GetStoreId(), m.GetAuthorizationModelId())
	default:
		p.writeLinef("OpenFGA does not have this model yet: %s", m.GetMessage())
	}
	p.writeLinef("The data behind this answer is at most %s old.", m.GetAge().AsDuration().Round(time.Millisecond))
}

// permissionsText groups permissions by resource: "example.com/trees: get, list".
func permissionsText(permissions []string) string {
	var resources []string
	of := map[string][]string{}
	for _, p := range permissions {
		r := resourceOfPermission(p)
		if of[r] == nil {
			resources = append(resources, r)
		}
		of[r] = append(of[r], p)
	}
	for i, r := range resources {
		resources[i] += ": " + verbsText(of[r])
	}
	return strings.Join(resources, "; ")
}

// verbsText returns the verbs of permissions of one resource, each with its subresource.
func verbsText(permissions []string) string {
	all := make([]string, len(permissions))
	for i, p := range permissions {
		all[i] = strings.TrimLeft(strings.TrimPrefix(p, resourceOfPermission(p)), "./")
	}
	return strings.Join(all, ", ")
}

// resourceOfPermission returns GROUP/PLURAL of a permission.
func resourceOfPermission(permission string) string {
	group, rest, _ := strings.Cut(permission, "/")
	return group + "/" + rest[:max(0, strings.IndexAny(rest, "./"))]
}

func membershipText(membership *accessv1.Name) string {
	if membership == nil {
		return ""
	}
	return " (GroupMembership " + nameText(membership) + ")"
}

func grantText(g *accessv1.Grant) string {
	return "Role " + nameText(g.GetRole()) + " on " + placeText(g.GetAt()) + " by PolicyBinding " + nameText(g.GetBinding())
}

func nameText(n *accessv1.Name) string {
	if n.GetNamespace() == "" {
		return n.GetName()
	}
	return n.GetNamespace() + "/" + n.GetName()
}

// placeText names kinds as kubectl does, with the API group: several groups may have a kind of the same name.
func placeText(p *accessv1.Place) string {
	group, kind, _ := strings.Cut(p.GetType(), "/")
	if group != iamv1alpha1.CoreGroup {
		kind += "." + group
	}
	switch {
	case p.GetAll():
		return "every " + kind
	case p.GetObject() == nil:
		return kind
	}
	return kind + " " + nameText(p.GetObject())
}

func principalText(p *accessv1.Principal) string {
	kinds := map[accessv1.Principal_Kind]string{
		accessv1.Principal_KIND_USER: "User", accessv1.Principal_KIND_GROUP: "Group", accessv1.Principal_KIND_TOKEN_GROUP: "group of the token",
		accessv1.Principal_KIND_SERVICE_ACCOUNT: "ServiceAccount", accessv1.Principal_KIND_CORE_SERVICE_ACCOUNT: "core ServiceAccount",
	}
	return kinds[p.GetKind()] + " " + cmp.Or(nameText(p.GetName()), p.GetUid())
}
