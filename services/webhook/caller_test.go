package webhook

import (
	"reflect"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	accessv1 "github.com/entail-dev/entail/gen/entail/access/v1"
	eventv1 "github.com/entail-dev/entail/gen/entail/event/v1"
	"github.com/entail-dev/entail/services/internal/decide"
)

func TestWhomAnAuthenticatedUserIs(t *testing.T) {
	groups, ofSystem := []string{"oidc:staff", "system:authenticated"}, []string{"system:authenticated"}
	for what, c := range map[string]struct {
		name, uid, subject string
		want               decide.Subject
	}{
		"a user with a UID":          {"alice@example.com", "alice", byUID, decide.Subject{User: "alice", Groups: groups}},
		"whatever names them":        {"bob", "alice", byUIDOrName, decide.Subject{User: "alice", Groups: groups}},
		"a user without one":         {"alice", "", byUID, decide.Subject{Groups: ofSystem}},
		"by name":                    {"alice", "", byUIDOrName, decide.Subject{User: "alice", Groups: groups}},
		"a service account":          {"system:serviceaccount:one:bot", "u-1", byUIDOrName, decide.Subject{Account: "u-1", Groups: groups}},
		"a service account without":  {"system:serviceaccount:one:bot", "", byUIDOrName, decide.Subject{Groups: ofSystem}},
		"one of the system":          {"system:node:one", "", byUIDOrName, decide.Subject{Groups: ofSystem}},
		"one of the system by a UID": {"system:node:one", "alice", byUID, decide.Subject{Groups: ofSystem}},
		"nobody":                     {"", "", byUIDOrName, decide.Subject{Groups: ofSystem}},
	} {
		if got := identity(authenticationv1.UserInfo{Username: c.name, UID: c.uid, Groups: groups}, c.subject); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s is %+v, want %+v", what, got, c.want)
		}
	}
}

func TestOnlyWhoAsksAboutThemselvesNeedsNoRight(t *testing.T) {
	s := &server{subject: byUID}
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
