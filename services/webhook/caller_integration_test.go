//go:build integration

package webhook_test

import (
	"fmt"
	"testing"

	"connectrpc.com/connect"
	rbacv1 "k8s.io/api/rbac/v1"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/rpc"
	"github.com/entail-dev/entail/services/internal/testenv"
	"github.com/entail-dev/entail/services/webhook"
)

// account makes a ServiceAccount of Kubernetes, and a client with its token.
func (b *bed) account(name string) (uid string, client accessv1connect.AccessServiceClient) {
	b.T.Helper()
	uid, caller := b.Kube.CreateCaller(b.T, name)
	return uid, accessv1connect.NewAccessServiceClient(caller, b.running.URL)
}

// mayReview lets an account query the access of others and list the protected resources.
func (b *bed) mayReview(account string) {
	b.T.Helper()
	b.Kube.GrantUser(b.T, "", "system:serviceaccount:"+namespace+":"+account,
		rbacv1.PolicyRule{Verbs: []string{"create"}, APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}},
		rbacv1.PolicyRule{Verbs: []string{"list"}, APIGroups: []string{kinds.ProtectedResources().Group}, Resources: []string{kinds.ProtectedResources().Resource}})
}

func TestAccessQueriesRequireReviewRightForOthers(t *testing.T) {
	b := newBedWith(t, func(c *webhook.Config) { c.RPC.Auth = rpc.AuthKubernetes })
	b.StartReflector()
	uid, bot := b.account("bot")
	_, b.client = b.account("reviewer")
	b.mayReview("reviewer")
	b.protect()
	web := b.create(kinds.Projects(), "web", map[string]any{"ownerRef": map[string]any{"kind": "Organization", "name": "acme"}})
	account := subjectFromMessage("ServiceAccount", "bot", uid)
	account["namespace"] = namespace
	b.bind("bot-web", "Project", "web", web, account)
	b.awaitReady()

	for what, c := range map[string]struct {
		subject *accessv1.Subject
		project string
		allowed bool
	}{
		"themselves": {nil, "web", true}, "by the UID": {&accessv1.Subject{ServiceAccountUid: uid}, "web", true},
		"another project": {nil, "other", false}, "a group of theirs": {&accessv1.Subject{Groups: []string{"system:authenticated"}}, "web", false},
	} {
		e := answered(b, bot.ExplainAccess, &accessv1.ExplainAccessRequest{Subject: c.subject, Verb: "get", Resource: projectNamed(c.project)})
		if e.GetAllowed() != c.allowed || e.GetNoObject() {
			t.Errorf("%s: got %v", what, e)
		}
	}
	if what := answered(b, bot.WhatCan, &accessv1.WhatCanRequest{}); len(what.GetRights()) != 1 {
		t.Errorf("got rights %v", what)
	}
	get := func(s *accessv1.Subject, least *accessv1.AtLeast) error {
		_, err := bot.CheckAccess(t.Context(), &accessv1.CheckAccessRequest{Subject: s, Verb: "get", Resource: projectNamed("web"), AtLeast: least})
		return err
	}
	for what, ask := range map[string]func() error{
		"another": func() error { return get(&accessv1.Subject{User: "alice"}, nil) },
		"a group that is not": func() error {
			return get(&accessv1.Subject{ServiceAccountUid: uid, Groups: []string{"oidc:staff"}}, nil)
		},
		"what is there": func() error { return get(nil, after(kinds.Projects(), "web")) },
		"everybody": func() error {
			_, err := bot.WhoCan(t.Context(), &accessv1.WhoCanRequest{Verb: "get", Resource: projectNamed("web")})
			return err
		},
		"a binding": func() error {
			_, err := bot.PreviewBinding(t.Context(), &accessv1.PreviewBindingRequest{
				Role: &accessv1.Name{Name: "reader"}, Subjects: []*accessv1.BindingSubject{{}}, Target: &accessv1.Target{Kind: "Project"},
			})
			return err
		},
		"kinds": func() error {
			_, err := bot.ListProtectedResources(t.Context(), &accessv1.ListProtectedResourcesRequest{})
			return err
		},
		"the model": func() error {
			_, err := bot.GetModelStatus(t.Context(), &accessv1.GetModelStatusRequest{})
			return err
		},
	} {
		testenv.Eventually(t, soon, func() error {
			if err := ask(); connect.CodeOf(err) == connect.CodePermissionDenied {
				return nil
			} else if err != nil && connect.CodeOf(err) != connect.CodeUnavailable {
				t.Fatalf("%s: got error %v", what, err)
			} else if err == nil {
				t.Fatalf("%s: got an answer, want PermissionDenied", what)
			}
			return fmt.Errorf("%s: service unavailable", what)
		})
	}
	e := answered(b, b.client.ExplainAccess, &accessv1.ExplainAccessRequest{
		Subject: &accessv1.Subject{ServiceAccountUid: uid}, Verb: "get", Resource: projectNamed("other"),
	})
	if e.GetAllowed() || !e.GetNoObject() {
		t.Errorf("caller with the right to review: got %v", e)
	}

	alice := b.create(kinds.IAMUsers(), "alice", map[string]any{"email": "alice@example.com"})
	preview := &accessv1.PreviewBindingRequest{
		Namespace: namespace, Role: &accessv1.Name{Name: "reader"}, Subjects: []*accessv1.BindingSubject{{Kind: "User", Name: "alice", Uid: alice}},
		Target: &accessv1.Target{ApiGroup: projects, Kind: "Project", Name: "web", Uid: web}, AtLeast: after(kinds.IAMUsers(), "alice"),
	}
	if m := answered(b, b.client.PreviewBinding, preview).GetLacking(); m.GetPermission() != projects+"/projects.get" || m.GetAt().GetObject().GetName() != "web" {
		t.Errorf("caller without rights: got lacking %v", m)
	}
	b.mayReview("bot")
	if m := answered(b, bot.PreviewBinding, preview).GetLacking(); m != nil {
		t.Errorf("caller with the role: got lacking %v", m)
	}
}
