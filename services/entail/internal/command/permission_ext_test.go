package command_test

import (
	"context"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"connectrpc.com/connect"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	"github.com/entail-dev/entail/gen/entail/access/v1/accessv1connect"
)

// fakeAccessService is an AccessService with the configured answer. It keeps the last request.
type fakeAccessService struct {
	accessv1connect.UnimplementedAccessServiceHandler

	allowed bool
	// without reports in the answer that the request lacks a namespace.
	without bool
	pages   int
	subject *accessv1.Subject
	about   *accessv1.Resource
	least   *accessv1.AtLeast
	preview *accessv1.PreviewBindingRequest
	// listing is the error of a request to list kinds; nil means success.
	listing error
}

func (a *fakeAccessService) CheckAccess(_ context.Context, r *accessv1.CheckAccessRequest) (*accessv1.CheckAccessResponse, error) {
	a.subject, a.about, a.least = r.GetSubject(), r.GetResource(), r.GetAtLeast()
	return &accessv1.CheckAccessResponse{Allowed: a.allowed, Permission: "p/projects." + r.GetVerb(), NoNamespace: a.without}, nil
}

func (a *fakeAccessService) ExplainAccess(_ context.Context, r *accessv1.ExplainAccessRequest) (*accessv1.ExplainAccessResponse, error) {
	a.subject, a.about = r.GetSubject(), r.GetResource()
	return &accessv1.ExplainAccessResponse{Allowed: a.allowed, Permission: "p/projects." + r.GetVerb(), NoNamespace: a.without}, nil
}

func (a *fakeAccessService) WhoCan(_ context.Context, r *accessv1.WhoCanRequest) (*accessv1.WhoCanResponse, error) {
	a.about = r.GetResource()
	answer := &accessv1.WhoCanResponse{NoNamespace: a.without, Holders: []*accessv1.Holder{{Principal: &accessv1.Principal{Name: &accessv1.Name{Name: fmt.Sprint("user", a.pages)}}}}}
	if a.pages++; a.pages < 3 {
		answer.NextPageToken = "more"
	}
	return answer, nil
}

func (a *fakeAccessService) WhatCan(_ context.Context, r *accessv1.WhatCanRequest) (*accessv1.WhatCanResponse, error) {
	a.subject = r.GetSubject()
	return &accessv1.WhatCanResponse{Rights: []*accessv1.Right{{Permissions: []string{"p/projects.get"}}}}, nil
}

func (a *fakeAccessService) ListProtectedResources(context.Context, *accessv1.ListProtectedResourcesRequest) (*accessv1.ListProtectedResourcesResponse, error) {
	if a.listing != nil {
		return nil, a.listing
	}
	return &accessv1.ListProtectedResourcesResponse{Resources: []*accessv1.ProtectedResource{
		{Plural: "projects", Type: "p/Project"}, {Plural: "twins", Type: "a/Twin"}, {Plural: "twins", Type: "b.c/Twin"},
	}}, nil
}

func (a *fakeAccessService) ask(t *testing.T, args ...string) commandResult {
	t.Helper()
	_, handler := accessv1connect.NewAccessServiceHandler(a)
	server := httptest.NewServer(handler)
	defer server.Close()
	return run(t, map[string]string{"ENTAIL_ACCESS_SERVER": server.URL, "HOME": t.TempDir()}, args...)
}

func TestCanISetsExitCode(t *testing.T) {
	if got := (&fakeAccessService{allowed: true}).ask(t, "can-i", "alice", "get", "projects/web"); got.code != 0 || !strings.HasPrefix(got.out, "yes") {
		t.Errorf("who may is told %+v", got)
	}
	if got := (&fakeAccessService{}).ask(t, "can-i", "alice", "get", "projects/web"); got.code != 1 || got.out != "no: this requires the permission p/projects.get; entail explain access shows what is missing\n" || got.err != "" {
		t.Errorf("who may not is told %+v", got)
	}
}

func TestAccessArgumentsParseEachForm(t *testing.T) {
	for words, want := range map[string]string{
		"alice get projects/web":                    "alice   p projects web",
		"user:group:x get projects":                 "group:x   p projects ",
		"serviceaccount:u-1 get twins.b.c/x":        " u-1  b.c twins x",
		"group:oidc:staff get projects --group g":   "  g,oidc:staff p projects ",
		"alice get projects/web --min-revision 7@x": "alice   p projects web",
	} {
		var a fakeAccessService
		got := a.ask(t, append([]string{"can-i"}, strings.Fields(words)...)...)
		text := fmt.Sprintf("%s %s %s %s %s %s", a.subject.GetUser(), a.subject.GetServiceAccountUid(), strings.Join(a.subject.GetGroups(), ","),
			a.about.GetApiGroup(), a.about.GetResource(), a.about.GetName())
		if text != want || strings.Contains(words, "7@x") != (a.least.GetRevision() == "7@x") || a.about.GetNamespace() != "" {
			t.Errorf("%q asks %q, %v: %+v; want %q", words, text, a.least, got, want)
		}
	}
	for words, want := range map[string]string{
		"user: get projects": "names no subject", "alice get projects/": "neither", "alice get twins": "twins.a, twins.b.c", "alice get nothings": "there are: projects.p",
	} {
		if got := (&fakeAccessService{}).ask(t, append([]string{"can-i"}, strings.Fields(words)...)...); got.code != 2 || !strings.Contains(got.err, want) {
			t.Errorf("%q is refused with %+v", words, got)
		}
	}
}

func TestAccessQuestionDefaultsToCaller(t *testing.T) {
	for _, line := range []string{"can-i get projects/web", "explain access get projects/web", "what-can"} {
		a := fakeAccessService{allowed: true}
		if got := a.ask(t, strings.Fields(line)...); got.code != 0 || a.subject == nil || a.subject.GetUser() != "" || len(a.subject.GetGroups()) > 0 {
			t.Errorf("%s asks about %v: %+v", line, a.subject, got)
		}
		if got := new(fakeAccessService).ask(t, append(strings.Fields(line), "--group", "g")...); got.code != 2 || !strings.Contains(got.err, "--group needs a user") {
			t.Errorf("%s with a group: %+v", line, got)
		}
	}
}

func TestParseResourceWithoutListRightRequiresGroup(t *testing.T) {
	a := fakeAccessService{allowed: true, listing: connect.NewError(connect.CodePermissionDenied, errors.New("user may not list"))}
	if got := a.ask(t, "can-i", "get", "projects/web"); got.code != 1 || !strings.Contains(got.err, "user may not list; name the API group: projects.GROUP") {
		t.Errorf("without a group: %+v", got)
	}
	if got := a.ask(t, "can-i", "get", "projects.p/web"); got.code != 0 {
		t.Errorf("with a group: %+v", got)
	}
}

func TestNamespaceHintIsPrintedIfNamespaceMatters(t *testing.T) {
	const hint = "projects/web: this kind is namespaced; without -n only grants for all namespaces count\n"
	for line, c := range map[string]struct {
		answers  fakeAccessService
		out, err string
	}{
		"can-i alice get projects/web":                  {fakeAccessService{without: true}, "no:", hint},
		"can-i get projects/web -o json":                {fakeAccessService{without: true}, `"noNamespace": true`, ""},
		"can-i bob get projects/web":                    {fakeAccessService{without: true, allowed: true}, "yes:", ""},
		"explain access alice get projects/web":         {fakeAccessService{without: true}, "no:", hint},
		"explain access alice get projects/web -o yaml": {fakeAccessService{without: true}, "noNamespace: true", ""},
		"explain access bob get projects/web":           {fakeAccessService{without: true, allowed: true}, "yes:", ""},
		"who-can get projects/web":                      {fakeAccessService{without: true}, "user0", hint},
		"who-can get projects/web -o json":              {fakeAccessService{without: true}, `"noNamespace": true`, ""},
		"who-can list projects/web":                     {fakeAccessService{}, "user0", ""},
	} {
		if got := c.answers.ask(t, strings.Fields(line)...); got.err != c.err || !strings.Contains(got.out, c.out) {
			t.Errorf("%s: %+v, want %q and %q", line, got, c.out, c.err)
		}
	}
}

func TestHelpDescribesArguments(t *testing.T) {
	for _, line := range []string{"can-i", "explain access", "who-can", "what-can"} {
		got := run(t, nil, append(strings.Fields(line), "--help")...)
		_, usage, _ := strings.Cut(got.out, "Usage:")
		for told, argument := range map[string]string{"WHO is the name of": "[WHO]", "A RESOURCE is the plural": "RESOURCE"} {
			if strings.Contains(got.out, told) != strings.Contains(usage, argument) {
				t.Errorf("%s has %s or not, and says otherwise:\n%s", line, argument, got.out)
			}
		}
	}
}

func TestWhoCanFollowsPages(t *testing.T) {
	var a fakeAccessService
	if got := a.ask(t, "who-can", "get", "projects/web", "-n", "x"); got.code != 0 || a.pages != 3 || !strings.Contains(got.out, "user2") || a.about.GetNamespace() != "x" {
		t.Errorf("%d pages: %+v", a.pages, got)
	}
}
