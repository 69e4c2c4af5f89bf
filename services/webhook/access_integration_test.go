//go:build integration

package webhook_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"connectrpc.com/connect"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/iam"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/internal/topology"
	"github.com/entail-dev/entail/services/webhook"
)

func TestMinObjectWaitsForOwnWrite(t *testing.T) {
	b := newBed(t)
	b.StartReflector()
	b.protect()
	acme := b.create(kinds.Organizations(), "acme", map[string]any{"type": "Standard"})
	b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.awaitReady()
	b.mayGet(false, after(kinds.Projects(), "web"))
	for i := range 5 { // Each answer must be as new as the API server.
		name := fmt.Sprint("on-acme-", i)
		b.bind(name, "Organization", "acme", acme, subjectFromMessage("User", "alice", alice))
		b.mayGet(true, after(kinds.PolicyBindings(), name))
		b.remove(kinds.PolicyBindings(), name)
		b.mayGet(false, after(kinds.PolicyBindings(), name))
	}
	b.bind("on-acme", "Organization", "acme", acme, subjectFromMessage("User", "alice", alice))
	b.mayGet(true, after(kinds.PolicyBindings(), "on-acme"))
	b.Delete(kinds.IAMUsers(), "alice")
	b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.mayGet(false, after(kinds.IAMUsers(), "alice"))
}

func TestKnownStaleStateDoesNotAllow(t *testing.T) {
	b := newBed(t)
	reflector := b.StartReflector()
	b.protect()
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.bind("old", "Project", "web", web, subjectFromMessage("User", "alice", alice))
	b.awaitReady()
	b.mayGet(true, nil)
	release := sync.OnceFunc(reflector.Pause())
	defer release()
	b.remove(kinds.PolicyBindings(), "old")
	b.bind("new", "Project", "web", web, subjectFromMessage("User", "alice", alice))
	for _, name := range []string{"old", "new"} {
		if answer, err := b.get("alice", "web", after(kinds.PolicyBindings(), name)); connect.CodeOf(err) != connect.CodeUnavailable {
			t.Errorf("request that must include %s: got %v, %v, want Unavailable", name, answer, err)
		} else if !strings.Contains(err.Error(), "the newest state of") {
			t.Errorf("request that must include %s: got error %v", name, err)
		}
	}
	release()
	b.mayGet(true, after(kinds.PolicyBindings(), "new"))
	b.remove(kinds.PolicyBindings(), "new")
	b.mayGet(false, after(kinds.PolicyBindings(), "new"))
}

func TestAnswersHaveReasons(t *testing.T) {
	b := newBed(t)
	b.StartReflector()
	b.protect()
	acme := b.create(kinds.Organizations(), "acme", map[string]any{"type": "Standard"})
	b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	staff := b.create(kinds.IAMGroups(), "staff", nil)
	b.create(kinds.GroupMemberships(), "alice-staff", map[string]any{
		"userRef": map[string]any{"name": "alice"}, "groupRef": map[string]any{"name": "staff", "namespace": namespace},
	})
	b.record("alice-staff", "alice", alice)
	group := subjectFromMessage("Group", "staff", staff)
	group["namespace"] = namespace
	b.bind("on-acme", "Organization", "acme", acme, group)
	b.awaitReady()
	b.mayGet(true, after(kinds.PolicyBindings(), "on-acme"))

	e := answered(b, b.client.ExplainAccess, &accessv1.ExplainAccessRequest{Subject: &accessv1.Subject{User: "alice"}, Verb: "get", Resource: projectNamed("web")})
	var path, inherits []string
	for _, p := range e.GetPath() {
		path = append(path, p.GetType()+" "+p.GetObject().GetName())
	}
	for _, r := range e.GetInherits() {
		inherits = append(inherits, r.GetName())
	}
	if !e.GetAllowed() || e.GetGrant().GetBinding().GetName() != "on-acme" || e.GetMembership().GetName() != "alice-staff" ||
		!slices.Equal(path, []string{projects + "/Project web", projects + "/Organization acme"}) || !slices.Equal(inherits, []string{"reader", "viewer"}) {
		t.Errorf("got explanation %v", e)
	}
	e = answered(b, b.client.ExplainAccess, &accessv1.ExplainAccessRequest{Subject: &accessv1.Subject{User: "alice"}, Verb: "create", Resource: projectNamed("")})
	if e.GetAllowed() || e.GetPermission() != projects+"/projects.create" || e.GetUnregistered() {
		t.Errorf("got explanation of a refusal %v", e)
	}
	revisions := []string{e.GetRevision()}
	revisions = append(revisions, b.lists(t)...)
	if revisions = append(revisions, b.previews(t, acme)); slices.Contains(revisions, "") {
		t.Errorf("got revisions %q", revisions)
	}
}

// lists checks the list methods and returns the revisions of their answers.
func (b *bed) lists(t *testing.T) (revisions []string) {
	t.Helper()
	var holders []string
	for token := ""; ; {
		page := answered(b, b.client.WhoCan, &accessv1.WhoCanRequest{Verb: "get", Resource: projectNamed("web"), PageSize: 1, PageToken: token})
		for _, h := range page.GetHolders() {
			holders = append(holders, h.GetPrincipal().GetKind().String()+" "+h.GetPrincipal().GetName().GetName())
		}
		revisions = append(revisions, page.GetRevision())
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if !slices.Equal(holders, []string{"KIND_USER alice", "KIND_GROUP staff"}) {
		t.Errorf("got holders %v", holders)
	}
	what := answered(b, b.client.WhatCan, &accessv1.WhatCanRequest{Subject: &accessv1.Subject{User: "alice"}})
	if len(what.GetRights()) != 1 || !slices.Equal(what.GetRights()[0].GetPermissions(), []string{projects + "/projects.get", projects + "/projects.list"}) {
		t.Errorf("got rights of alice %v", what)
	}
	resources := answered(b, b.client.ListProtectedResources, &accessv1.ListProtectedResourcesRequest{})
	if len(resources.GetResources()) != 2 || !slices.Equal(resources.GetResources()[1].GetParents(), []string{projects + "/Organization"}) {
		t.Errorf("got protected resources %v", resources)
	}
	model := answered(b, b.client.GetModelStatus, &accessv1.GetModelStatusRequest{})
	if model.GetKinds() != 2 || model.GetPermissions() != 6 || model.GetBytes() == 0 || model.GetSynced() {
		t.Errorf("got model %v", model)
	}
	return append(revisions, what.GetRevision(), resources.GetRevision(), model.GetRevision())
}

func TestGetModelStatus(t *testing.T) {
	b := newBed(t)
	b.StartReflector()
	b.protect()
	b.awaitReady()
	b.create(kinds.Stores(), "iam", map[string]any{"coreModule": "model\n  schema 1.2\n"})
	types := iam.NewRegistry(b.registered()).TypeDefinitions()
	says := func(synced bool, message string, status, digest string) {
		t.Helper()
		b.ApplyStatus("store-sync", kinds.Stores(), "iam", map[string]any{
			"storeId": "S", "authorizationModelId": "M",
			"modules": []any{map[string]any{"name": "iam", "source": "iam", "state": "Live", "digest": digest}},
			"conditions": []any{map[string]any{
				"type": corev1alpha1.ModelSynced, "status": status, "reason": "Odd", "message": "odd", "observedGeneration": 1, "lastTransitionTime": "2026-01-02T03:04:05Z",
			}},
		})
		testenv.Eventually(t, soon, func() error {
			m, err := b.client.GetModelStatus(t.Context(), &accessv1.GetModelStatusRequest{})
			if err != nil {
				return err
			}
			if m.GetStore() != "iam" || m.GetStoreId() != "S" || m.GetAuthorizationModelId() != "M" || m.GetSynced() != synced || !strings.Contains(m.GetMessage(), message) ||
				int(m.GetTypes()) != len(types) || int(m.GetBytes()) != iam.EncodedSize(types) || m.GetAge().AsDuration() <= 0 || m.GetAge().AsDuration() > soon || m.GetRevision() == "" {
				return fmt.Errorf("got model %v", m)
			}
			return nil
		})
	}
	says(true, "Odd: odd", "True", iam.TypesDigest(types))
	says(false, "is not up to date", "True", iam.TypesDigest(types[1:]))
	says(false, "Odd: odd", "False", iam.TypesDigest(types))
}

// previews checks PreviewBinding and returns the revision of its answer.
func (b *bed) previews(t *testing.T, acme string) (revision string) {
	t.Helper()
	bob := b.create(kinds.IAMUsers(), "bob", map[string]any{"email": "bob@example.com"})
	preview := answered(b, b.client.PreviewBinding, &accessv1.PreviewBindingRequest{
		Namespace: namespace, Role: &accessv1.Name{Name: "reader"}, AtLeast: after(kinds.IAMUsers(), "bob"),
		Target:   &accessv1.Target{ApiGroup: projects, Kind: "Organization", Name: "acme", Uid: acme},
		Subjects: []*accessv1.BindingSubject{{Kind: "User", Name: "bob", Uid: bob}, {Kind: "User", Name: "carol", Uid: "x"}},
	})
	if preview.GetNoRole() || preview.GetNoTarget() || len(preview.GetGains()) != 2 ||
		len(preview.GetGains()[0].GetPermissions()) != 2 || preview.GetGains()[0].GetAbsent() || !preview.GetGains()[1].GetAbsent() {
		t.Errorf("got preview %v", preview)
	}
	return preview.GetRevision()
}

func TestRestartAndReplayKeepAnswers(t *testing.T) {
	b := newBed(t)
	reflector := b.StartReflector()
	b.protect()
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	for _, name := range []string{"one", "two"} {
		b.bind(name, "Project", "web", web, subjectFromMessage("User", "alice", alice))
	}
	b.awaitReady()
	b.mayGet(true, nil)
	reflector.Replay()
	b.mayGet(true, after(kinds.PolicyBindings(), "one"))
	b.running.Stop()
	b.remove(kinds.PolicyBindings(), "one")
	b.serve()
	b.awaitReady()
	b.mayGet(true, after(kinds.PolicyBindings(), "one"))
	b.running.Stop()
	b.remove(kinds.PolicyBindings(), "two")
	b.serve()
	b.awaitReady()
	b.mayGet(false, after(kinds.PolicyBindings(), "two"))
}

func TestMinRevisionTimeoutIsUnavailable(t *testing.T) {
	b := newBed(t)
	b.StartReflector()
	b.awaitReady()
	answer := answered(b, b.client.CheckAccess, &accessv1.CheckAccessRequest{
		Subject: &accessv1.Subject{User: "alice"}, Verb: "get", Resource: projectNamed("web"),
	})
	b.mayGet(false, &accessv1.AtLeast{Revision: answer.GetRevision()})
	_, began, err := topology.ParseRevision(answer.GetRevision())
	if err != nil {
		t.Fatal(err)
	}
	for want, least := range map[connect.Code]*accessv1.AtLeast{
		connect.CodeUnavailable:     {Revision: topology.FormatRevision(1<<40, began.Format("2006-01-02T15:04:05.999999999Z07:00"))},
		connect.CodeInvalidArgument: {Revision: "yesterday"},
	} {
		if _, err := b.get("alice", "web", least); connect.CodeOf(err) != want {
			t.Errorf("at least %v: %v, want %v", least, err, want)
		}
	}
	if _, err := b.get("alice", "web", after(kinds.RoleBindings(), "x")); connect.CodeOf(err) != connect.CodeInvalidArgument {
		t.Errorf("object of a kind that is not followed: got %v", err)
	}
}

func TestStaleIndexRefusesQueries(t *testing.T) {
	b := newBedWith(t, func(c *webhook.Config) { c.MaxStaleness = 5 * time.Second })
	reflector := b.StartReflector()
	b.protect()
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.bind("old", "Project", "web", web, subjectFromMessage("User", "alice", alice))
	b.awaitReady()
	b.mayGet(true, nil)
	release := sync.OnceFunc(reflector.Pause())
	defer release()
	testenv.Eventually(t, soon, func() error {
		_, err := b.get("alice", "web", nil)
		if connect.CodeOf(err) != connect.CodeUnavailable || !strings.Contains(err.Error(), "--max-staleness") {
			return fmt.Errorf("without barriers: got %w, want Unavailable", err)
		}
		return nil
	})
	b.remove(kinds.PolicyBindings(), "old")
	if answer, err := b.get("alice", "web", nil); connect.CodeOf(err) != connect.CodeUnavailable {
		t.Errorf("after an unpublished revocation: got %v, %v, want Unavailable", answer, err)
	}
	release()
	b.mayGet(false, after(kinds.PolicyBindings(), "old"))
}

func TestIAMObjectsCanBeTargets(t *testing.T) {
	b := newBedWith(t, func(c *webhook.Config) { c.UnobservedTargets = "trust" })
	b.StartReflector()
	b.protect()
	b.create(kinds.ProtectedResources(), "group", map[string]any{
		"serviceRef": map[string]any{"name": "iam.miloapis.com"}, "kind": "Group", "singular": "group", "plural": "groups", "permissions": []any{"get"},
	})
	b.create(kinds.IAMRoles(), "joiner", map[string]any{"launchStage": "Beta", "includedPermissions": []any{"iam.miloapis.com/groups.get"}})
	staff := b.create(kinds.IAMGroups(), "staff", nil)
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	for name, uid := range map[string]string{"one": staff, "two": "another"} {
		group := map[string]any{"apiGroup": "iam.miloapis.com", "kind": "Group", "namespace": namespace, "name": "staff", "uid": uid}
		b.create(kinds.PolicyBindings(), name, map[string]any{
			"roleRef": map[string]any{"name": "joiner"}, "subjects": []any{subjectFromMessage("User", "alice", alice)},
			"resourceSelector": map[string]any{"resourceRef": group},
		})
	}
	b.awaitReady()
	may := func(want bool, least *accessv1.AtLeast) {
		t.Helper()
		answer := answered(b, b.client.CheckAccess, &accessv1.CheckAccessRequest{
			Subject: &accessv1.Subject{User: "alice"}, Verb: "get", AtLeast: least,
			Resource: &accessv1.Resource{ApiGroup: "iam.miloapis.com", Resource: "groups", Namespace: namespace, Name: "staff"},
		})
		if answer.GetAllowed() != want {
			t.Errorf("group: got allowed %v, want %v", answer, want)
		}
	}
	may(true, nil)
	b.asksInNoNamespace(t)
	b.remove(kinds.PolicyBindings(), "one")
	may(false, after(kinds.PolicyBindings(), "one")) // The other binding names a group of that name with another UID.
	b.remove(kinds.IAMGroups(), "staff")
	may(false, after(kinds.IAMGroups(), "staff"))
}

// asksInNoNamespace sends questions about a group without a namespace. The answers must report that a namespace is
// missing.
func (b *bed) asksInNoNamespace(t *testing.T) {
	t.Helper()
	for in, want := range map[string]bool{"": true, namespace: false} {
		alice, group := &accessv1.Subject{User: "alice"}, &accessv1.Resource{ApiGroup: "iam.miloapis.com", Resource: "groups", Namespace: in, Name: "staff"}
		may := answered(b, b.client.CheckAccess, &accessv1.CheckAccessRequest{Subject: alice, Verb: "get", Resource: group})
		why := answered(b, b.client.ExplainAccess, &accessv1.ExplainAccessRequest{Subject: alice, Verb: "get", Resource: group})
		who := answered(b, b.client.WhoCan, &accessv1.WhoCanRequest{Verb: "get", Resource: group})
		if may.GetNoNamespace() != want || why.GetNoNamespace() != want || who.GetNoNamespace() != want {
			t.Errorf("namespace %q: got answers %v, %v, %v", in, may, why, who)
		}
	}
}

// TestUncountedGroupsAreNotAllowed verifies that AccessService answers as the API server would.
// Bindings on groups of unauthenticated users act only if the setting allows it.
func TestUncountedGroupsAreNotAllowed(t *testing.T) {
	for wanted, also := range map[bool]int{false: 0, true: 1} {
		t.Run(fmt.Sprint("everybody ", wanted), func(t *testing.T) {
			b := newBedWith(t, func(c *webhook.Config) { c.Anonymous = wanted })
			b.StartReflector()
			b.protect()
			web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
			groups := []any{map[string]any{"kind": "Group", "name": "system:unauthenticated"}, map[string]any{"kind": "Group", "name": "oidc:staff"}}
			b.bind("for-all", "Project", "web", web, groups...)
			b.awaitReady()
			b.mayGet(false, after(kinds.PolicyBindings(), "for-all"))

			everybody := &accessv1.Subject{Groups: []string{"system:unauthenticated"}}
			check := answered(b, b.client.CheckAccess, &accessv1.CheckAccessRequest{Subject: everybody, Verb: "get", Resource: projectNamed("web")})
			explained := answered(b, b.client.ExplainAccess, &accessv1.ExplainAccessRequest{Subject: everybody, Verb: "get", Resource: projectNamed("web")})
			what := answered(b, b.client.WhatCan, &accessv1.WhatCanRequest{Subject: everybody})
			if check.GetAllowed() != wanted || explained.GetAllowed() != wanted || len(what.GetRights()) != also {
				t.Errorf("unauthenticated group: got %v, %v, %v", check, explained, what)
			}
			if who := answered(b, b.client.WhoCan, &accessv1.WhoCanRequest{Verb: "get", Resource: projectNamed("web")}); len(who.GetHolders()) != 1+also {
				t.Errorf("got holders %v", who)
			}
			preview := answered(b, b.client.PreviewBinding, &accessv1.PreviewBindingRequest{
				Namespace: namespace, Role: &accessv1.Name{Name: "reader"}, Target: &accessv1.Target{ApiGroup: projects, Kind: "Project"},
				Subjects: []*accessv1.BindingSubject{{Kind: "Group", Name: "system:unauthenticated"}, {Kind: "Group", Name: "oidc:other"}},
			})
			if g := preview.GetGains(); len(g) != 2 || g[0].GetAbsent() == wanted || (len(g[0].GetPermissions()) > 0) != wanted || g[1].GetAbsent() {
				t.Errorf("got gains %v", g)
			}
		})
	}
}

func TestMissingProjectEndpointDoesNotAllow(t *testing.T) {
	b := newBed(t)
	b.StartReflector()
	b.protect()
	b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	b.create(kinds.PolicyBindings(), "on-all", map[string]any{
		"roleRef": map[string]any{"name": "reader"}, "subjects": []any{subjectFromMessage("User", "alice", alice)},
		"resourceSelector": map[string]any{"resourceKind": map[string]any{"apiGroup": projects, "kind": "Project"}},
	})
	b.awaitReady()
	for project, want := range map[string]bool{"web": true, "typo": false} {
		answer := answered(b, b.client.CheckAccess, &accessv1.CheckAccessRequest{
			Subject: &accessv1.Subject{User: "alice"}, Verb: "list", Resource: &accessv1.Resource{ApiGroup: projects, Resource: "projects", Project: project},
		})
		if answer.GetAllowed() != want {
			t.Errorf("endpoint of project %s: got %v", project, answer)
		}
	}
}
