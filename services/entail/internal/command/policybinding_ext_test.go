package command_test

import (
	"context"
	"strings"
	"testing"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
)

const bindingFile = `apiVersion: iam.miloapis.com/v1alpha1
kind: PolicyBinding
metadata: {name: on-acme, namespace: team-a}
spec:
  roleRef: {name: reader, namespace: team-b}
  subjects: [{kind: User, name: alice, uid: u1}, {kind: Group, name: staff, namespace: team-a, uid: u2}]
  resourceSelector:
    resourceRef: {apiGroup: r.example.com, kind: Organization, name: acme, uid: u3}
`

func (a *fakeAccessService) PreviewBinding(_ context.Context, r *accessv1.PreviewBindingRequest) (*accessv1.PreviewBindingResponse, error) {
	a.preview, a.least = r, r.GetAtLeast()
	lacking := &accessv1.Missing{Permission: "r/orgs.get", At: &accessv1.Place{Type: "r/Organization", Object: &accessv1.Name{Name: "acme"}}}
	return &accessv1.PreviewBindingResponse{Gains: []*accessv1.Gain{{Subject: r.GetSubjects()[0], Permissions: []string{"r/orgs.get"}}}, Lacking: lacking}, nil
}

func (a *fakeAccessService) GetModelStatus(_ context.Context, r *accessv1.GetModelStatusRequest) (*accessv1.GetModelStatusResponse, error) {
	a.least = r.GetAtLeast()
	return &accessv1.GetModelStatusResponse{Store: "iam", Kinds: 2, Message: "Pending: soon"}, nil
}

func TestPreviewPolicyBindingSendsManifest(t *testing.T) {
	var a fakeAccessService
	got := a.ask(t, "preview", "policybinding", "-f", written(t, bindingFile))
	r := a.preview
	if got.code != 0 || !strings.Contains(got.out, "User alice   r/orgs: get") || !strings.Contains(got.out, "You do not have r/orgs.get on ") || r.GetNamespace() != "team-a" || r.GetRole().GetNamespace() != "team-b" ||
		r.GetRole().GetName() != "reader" || len(r.GetSubjects()) != 2 || r.GetSubjects()[1].GetUid() != "u2" || r.GetTarget().GetName() != "acme" || r.GetTarget().GetUid() != "u3" {
		t.Errorf("asked %v, got %+v", r, got)
	}
	head, _, _ := strings.Cut(bindingFile, "    resourceRef")
	all := strings.ReplaceAll(head, ", namespace: team-a}\nspec", "}\nspec") + "    resourceKind: {apiGroup: r.example.com, kind: Organization}"
	got = a.ask(t, "preview", "policybinding", "-n", "team-c", "-f", written(t, all))
	if r = a.preview; got.code != 0 || r.GetNamespace() != "team-c" || r.GetTarget().GetKind() != "Organization" || r.GetTarget().GetName() != "" {
		t.Errorf("of all of a kind: asked %v, got %+v", r, got)
	}
	for what, c := range map[string]struct{ file, want string }{
		"two":          {bindingFile + "---\n" + bindingFile, "2 PolicyBindings: preview one at a time"},
		"none":         {"---\n", "0 PolicyBindings"},
		"another kind": {strings.Replace(bindingFile, "kind: PolicyBinding", "kind: Role", 1), `a "Role" named "on-acme"`},
		"no target":    {strings.ReplaceAll(bindingFile, "name: acme", `name: ""`), "resourceRef with a name"},
	} {
		if got := new(fakeAccessService).ask(t, "preview", "policybinding", "-f", written(t, c.file)); got.code != 2 || !strings.Contains(got.err, c.want) {
			t.Errorf("%s: %+v, want %q", what, got, c.want)
		}
	}
}

func TestIAMKindsListsProtectedResources(t *testing.T) {
	var a fakeAccessService
	if got := a.ask(t, "iam", "kinds"); got.code != 0 || !strings.Contains(got.out, "b.c/Twin") {
		t.Errorf("kinds: %+v", got)
	}
	if got := a.ask(t, "iam", "observe"); got.code != 0 || !strings.Contains(got.out, `entail.dev/aggregate-to-targets: "true"`) ||
		!strings.Contains(got.out, "apiGroups: [b.c]") || strings.Contains(got.out, "miloapis.com") {
		t.Errorf("the rights on them: %+v", got)
	}
	if got := a.ask(t, "iam", "model"); got.code != 0 || !strings.Contains(got.out, "does not have this model yet: Pending: soon") {
		t.Errorf("model: %+v", got)
	}
}

func TestMinObjectIsSentWithRequest(t *testing.T) {
	for argument, want := range map[string]string{
		"policybinding/team-a/on-acme": "iam.miloapis.com policybindings team-a on-acme",
		"GroupMemberships/team-a/m":    "iam.miloapis.com groupmemberships team-a m",
		"user/alice":                   "iam.miloapis.com users  alice",
		"project/web":                  "resourcemanager.miloapis.com projects  web",
	} {
		var a fakeAccessService
		got := a.ask(t, "can-i", "alice", "get", "projects.p/web", "--after", argument, "--min-revision", "7@x")
		o := a.least.GetObject()
		if text := strings.Join([]string{o.GetGroup(), o.GetResource(), o.GetNamespace(), o.GetName()}, " "); text != want || a.least.GetRevision() != "7@x" {
			t.Errorf("%s waits for %q, %v: %+v", argument, text, a.least, got)
		}
	}
	for argument, want := range map[string]string{
		"policybinding/on-acme": "KIND/NAMESPACE/NAME", "user/a/b": "names no User", "user": "names no User", "store/x": "is of none of protectedresource", "users/": "names no User",
	} {
		if got := new(fakeAccessService).ask(t, "can-i", "alice", "get", "projects.p/web", "--after", argument); got.code != 2 || !strings.Contains(got.err, want) {
			t.Errorf("%s: %+v", argument, got)
		}
	}
}
