package review

import (
	"reflect"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/entail-dev/entail/services/internal/authz"
)

func TestIdentifySubject(t *testing.T) {
	groups, ofSystem := []string{"oidc:staff", "system:authenticated"}, []string{"system:authenticated"}
	for what, c := range map[string]struct {
		name, uid, subject string
		want               authz.Subject
	}{
		"a user with a UID":          {"alice@example.com", "alice", ByUID, authz.Subject{User: "alice", Groups: groups}},
		"whatever names them":        {"bob", "alice", ByUIDOrName, authz.Subject{User: "alice", Groups: groups}},
		"a user without one":         {"alice", "", ByUID, authz.Subject{Groups: ofSystem}},
		"by name":                    {"alice", "", ByUIDOrName, authz.Subject{User: "alice", Groups: groups}},
		"a service account":          {"system:serviceaccount:one:bot", "u-1", ByUIDOrName, authz.Subject{Account: "u-1", Groups: groups}},
		"a service account without":  {"system:serviceaccount:one:bot", "", ByUIDOrName, authz.Subject{Groups: ofSystem}},
		"one of the system":          {"system:node:one", "", ByUIDOrName, authz.Subject{Groups: ofSystem}},
		"one of the system by a UID": {"system:node:one", "alice", ByUID, authz.Subject{Groups: ofSystem}},
		"nobody":                     {"", "", ByUIDOrName, authz.Subject{Groups: ofSystem}},
	} {
		if got := NewTrustRules(TrustRules{Subject: c.subject}).IdentifySubject(authenticationv1.UserInfo{Username: c.name, UID: c.uid, Groups: groups}); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, want %+v", what, got, c.want)
		}
	}
}

// The authenticator of another system has names of its own for accounts.
func TestCompileAccountNames(t *testing.T) {
	names, err := CompileAccountNames(`sa-[a-z]+@datum\.default`)
	if err != nil {
		t.Fatal(err)
	}
	rules := NewTrustRules(TrustRules{Subject: ByUIDOrName, Accounts: names})
	for name, want := range map[string]authz.Subject{
		"sa-one@datum.default":         {Account: "u-1"},
		"system:serviceaccount:a:bot":  {Account: "u-1"},
		"alice@datum.default":          {User: "u-1"},
		"x-sa-one@datum.default":       {User: "u-1"},
		"sa-one@datum.default.example": {User: "u-1"},
		"sa-one@datumxdefault":         {User: "u-1"},
	} {
		if got := rules.IdentifySubject(authenticationv1.UserInfo{Username: name, UID: "u-1"}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
	}
	if got := rules.IdentifySubject(authenticationv1.UserInfo{Username: "sa-one@datum.default"}); got.Account != "" {
		t.Errorf("without a UID: got %+v", got)
	}
	everybody, err := CompileAccountNames(".*")
	if err != nil {
		t.Fatal(err)
	}
	if got := NewTrustRules(TrustRules{Accounts: everybody}).IdentifySubject(authenticationv1.UserInfo{Username: "system:node:one", UID: "u-1"}); got.Account != "" {
		t.Errorf("a name of the system: got %+v", got)
	}
	if _, err := CompileAccountNames("("); err == nil {
		t.Error("an expression that cannot be read is accepted")
	}
}

func TestEffectiveGroups(t *testing.T) {
	anybody := authenticationv1.UserInfo{Username: "system:anonymous", Groups: []string{"system:unauthenticated", "system:anonymous", "oidc:x"}}
	if got := NewTrustRules(TrustRules{}).IdentifySubject(anybody); len(got.Groups) > 0 || got.User != "" {
		t.Errorf("without Anonymous: got %+v", got)
	}
	if got := NewTrustRules(TrustRules{Anonymous: true}).IdentifySubject(anybody); len(got.Groups) != 2 {
		t.Errorf("with Anonymous: got %+v", got)
	}
	if len(anybody.Groups) != 3 {
		t.Error("Identify changed its argument")
	}
}
