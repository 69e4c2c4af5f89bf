package validating

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// shippedWebhook returns the webhook in deploy/base.
func shippedWebhook(t *testing.T) admissionregistrationv1.ValidatingWebhook {
	t.Helper()
	data, err := os.ReadFile("../../../../deploy/base/implied-role/admission.yaml")
	if err != nil {
		t.Fatal(err)
	}
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), len(data))
	for {
		var c admissionregistrationv1.ValidatingWebhookConfiguration
		if err := documents.Decode(&c); errors.Is(err, io.EOF) {
			t.Fatal("there is none")
		} else if err != nil {
			t.Fatal(err)
		}
		if c.Kind == "ValidatingWebhookConfiguration" && c.Name == Name && len(c.Webhooks) == 1 {
			return c.Webhooks[0]
		}
	}
}

func TestShippedWebhookEqualsRulesWebhook(t *testing.T) {
	is, want := shippedWebhook(t), rulesWebhook()
	is.Rules[0].Scope = nil
	for _, w := range []*admissionregistrationv1.ValidatingWebhook{&is, &want} {
		for i := range w.MatchConditions {
			w.MatchConditions[i].Expression = strings.Join(strings.Fields(w.MatchConditions[i].Expression), " ")
		}
	}
	if is.Name != want.Name || !equality.Semantic.DeepEqual(is.Rules, want.Rules) || !equality.Semantic.DeepEqual(is.MatchConditions, want.MatchConditions) {
		t.Errorf("it is %+v\nwant %+v", is, want)
	}
	if *is.SideEffects != *want.SideEffects || *is.FailurePolicy != admissionregistrationv1.Fail {
		t.Error("whatever cannot be judged passes, or it says too much of what it does")
	}
}

func TestMatchesSubjectFollowsKubernetes(t *testing.T) {
	person := requestAuthor{Username: "alice", Groups: []string{"team", "system:authenticated"}}
	account := requestAuthor{Username: "system:serviceaccount:here:bot", Groups: []string{"system:serviceaccounts", "system:serviceaccounts:here"}}
	for name, c := range map[string]struct {
		who     requestAuthor
		subject rbacv1.Subject
		want    bool
	}{
		"a user":                             {person, rbacv1.Subject{Kind: "User", Name: "alice"}, true},
		"another user":                       {person, rbacv1.Subject{Kind: "User", Name: "team"}, false},
		"a group":                            {person, rbacv1.Subject{Kind: "Group", Name: "team"}, true},
		"everybody":                          {person, rbacv1.Subject{Kind: "Group", Name: "system:authenticated"}, true},
		"a group of their name":              {person, rbacv1.Subject{Kind: "Group", Name: "alice"}, false},
		"an account of their name":           {person, rbacv1.Subject{Kind: "ServiceAccount", Name: "alice"}, false},
		"an account":                         {account, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "here", Name: "bot"}, true},
		"an account of the binding's place":  {account, rbacv1.Subject{Kind: "ServiceAccount", Name: "bot"}, true},
		"an account of another place":        {account, rbacv1.Subject{Kind: "ServiceAccount", Namespace: "there", Name: "bot"}, false},
		"a user that is called like account": {account, rbacv1.Subject{Kind: "User", Name: account.Username}, true},
		"accounts of the place":              {account, rbacv1.Subject{Kind: "Group", Name: "system:serviceaccounts:here"}, true},
		"a kind that is none":                {person, rbacv1.Subject{Kind: "Robot", Name: "alice"}, false},
	} {
		if got := matchesSubject(c.who, c.subject, "here"); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}
