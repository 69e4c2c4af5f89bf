package webhook

import (
	"testing"

	"connectrpc.com/connect"
	authenticationv1 "k8s.io/api/authentication/v1"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

func TestIsOwnAccessRequest(t *testing.T) {
	s := &accessServer{rules: review.NewTrustRules(review.TrustRules{Subject: review.ByUID})}
	alice := authenticationv1.UserInfo{Username: "a", UID: "alice", Groups: []string{"oidc:staff", "system:authenticated"}}
	about := func(s *accessv1.Subject) any { return &accessv1.CheckAccessRequest{Subject: s} }
	for what, c := range map[string]struct {
		request any
		own     bool
	}{
		"nobody named":          {about(nil), true},
		"by name":               {about(&accessv1.Subject{User: "alice", Groups: []string{"oidc:staff"}}), true},
		"a group of theirs":     {about(&accessv1.Subject{Groups: []string{"system:authenticated"}}), true},
		"another":               {about(&accessv1.Subject{User: "a"}), false},
		"an account":            {about(&accessv1.Subject{ServiceAccountUid: "alice"}), false},
		"another group":         {about(&accessv1.Subject{User: "alice", Groups: []string{"oidc:admins"}}), false},
		"what they may":         {&accessv1.WhatCanRequest{}, true},
		"why they may":          {&accessv1.ExplainAccessRequest{Subject: &accessv1.Subject{User: "alice"}}, true},
		"who may":               {&accessv1.WhoCanRequest{}, false},
		"a binding":             {&accessv1.PreviewBindingRequest{}, false},
		"kinds":                 {&accessv1.ListProtectedResourcesRequest{}, false},
		"and what is there":     {&accessv1.WhatCanRequest{AtLeast: &accessv1.AtLeast{Object: &eventv1.ObjectRef{Name: "x"}}}, false},
		"and what they know of": {&accessv1.WhatCanRequest{AtLeast: &accessv1.AtLeast{Revision: "7@x"}}, true},
	} {
		if got := s.isOwnAccessRequest(alice, c.request); got != c.own {
			t.Errorf("%s: %v", what, got)
		}
	}
	if s.isOwnAccessRequest(authenticationv1.UserInfo{Username: "alice"}, about(&accessv1.Subject{User: "alice"})) {
		t.Error("a caller without a UID counts as the User of that name")
	}
}

func TestMinObjectRequiresReviewRight(t *testing.T) {
	object := &accessv1.AtLeast{Object: &eventv1.ObjectRef{Name: "x"}}
	for want, requests := range map[string][]any{
		"list protectedresources.iam.miloapis.com": {
			&accessv1.ListProtectedResourcesRequest{}, &accessv1.GetModelStatusRequest{},
			&accessv1.ListProtectedResourcesRequest{AtLeast: &accessv1.AtLeast{Revision: "7@x"}},
		},
		"create subjectaccessreviews.authorization.k8s.io": {
			&accessv1.ListProtectedResourcesRequest{AtLeast: object}, &accessv1.GetModelStatusRequest{AtLeast: object},
		},
	} {
		for _, request := range requests {
			if right, err := rightToListKinds(request); err != nil || right.String() != want {
				t.Errorf("%T %v: got right %s, %v, want %s", request, request, right, err, want)
			}
		}
	}
}

// TestEveryMethodValidatesMinRevision verifies that every method rejects an invalid minimum revision.
func TestEveryMethodValidatesMinRevision(t *testing.T) {
	s, never := &accessServer{}, &accessv1.AtLeast{Revision: "yesterday"}
	for what, ask := range map[string]func() (any, error){
		"CheckAccess": func() (any, error) { return s.CheckAccess(t.Context(), &accessv1.CheckAccessRequest{AtLeast: never}) },
		"ExplainAccess": func() (any, error) {
			return s.ExplainAccess(t.Context(), &accessv1.ExplainAccessRequest{AtLeast: never})
		},
		"WhoCan":  func() (any, error) { return s.WhoCan(t.Context(), &accessv1.WhoCanRequest{AtLeast: never}) },
		"WhatCan": func() (any, error) { return s.WhatCan(t.Context(), &accessv1.WhatCanRequest{AtLeast: never}) },
		"ListProtectedResources": func() (any, error) {
			return s.ListProtectedResources(t.Context(), &accessv1.ListProtectedResourcesRequest{AtLeast: never})
		},
		"GetModelStatus": func() (any, error) {
			return s.GetModelStatus(t.Context(), &accessv1.GetModelStatusRequest{AtLeast: never})
		},
		"PreviewBinding": func() (any, error) {
			return s.PreviewBinding(t.Context(), &accessv1.PreviewBindingRequest{AtLeast: never})
		},
	} {
		if answer, err := ask(); connect.CodeOf(err) != connect.CodeInvalidArgument {
			t.Errorf("%s: got %v, %v, want InvalidArgument", what, answer, err)
		}
	}
}

func TestCountRightsThatFit(t *testing.T) {
	rights := func(gives ...int) (page []authz.HeldRole) {
		for _, n := range gives {
			page = append(page, authz.HeldRole{PermissionCount: n})
		}
		return page
	}
	for want, page := range map[int][]authz.HeldRole{
		0: nil, 3: rights(1, maxPermissions-2, 1), 2: rights(1, maxPermissions-2, 2), 1: rights(2*maxPermissions, 1),
	} {
		if got := countRightsThatFit(page); got != want {
			t.Errorf("page %v: got %d rows, want %d", page, got, want)
		}
	}
}
