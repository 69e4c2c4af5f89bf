package webhook

import (
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/webhook/internal/review"
)

func TestOnlyWhoAsksAboutThemselvesNeedsNoRight(t *testing.T) {
	s := &server{rules: review.NewRules(review.Rules{Subject: review.ByUID})}
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
		if got := s.isOwn(alice, c.request); got != c.own {
			t.Errorf("%s: %v", what, got)
		}
	}
	if s.isOwn(authenticationv1.UserInfo{Username: "alice"}, about(&accessv1.Subject{User: "alice"})) {
		t.Error("who has no UID is taken for the User of their name")
	}
}

func TestAPageEndsWherePermissionsAreTooMany(t *testing.T) {
	rights := func(gives ...int) (page []decide.Right) {
		for _, n := range gives {
			page = append(page, decide.Right{Gives: n})
		}
		return page
	}
	for want, page := range map[int][]decide.Right{
		0: nil, 3: rights(1, maxPermissions-2, 1), 2: rights(1, maxPermissions-2, 2), 1: rights(2*maxPermissions, 1),
	} {
		if got := fitting(page); got != want {
			t.Errorf("of %v fit %d, want %d", page, got, want)
		}
	}
}
