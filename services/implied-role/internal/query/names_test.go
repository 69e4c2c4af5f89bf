package query

import (
	"strings"
	"testing"

	"connectrpc.com/connect"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// putRole makes a Role, or a ClusterRole if the namespace is empty.
func (w *queryEnv) putRole(namespace, name string) {
	w.t.Helper()
	kind := kinds.Roles()
	if namespace == "" {
		kind = kinds.ClusterRoles()
	}
	w.put(kind, namespace, name, &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}})
}

// newNamesEnv has the Roles viewer and unheld, the ClusterRole cluster-admin, and the user alice.
func newNamesEnv(t *testing.T) *queryEnv {
	t.Helper()
	w := newQueryEnv(t)
	w.namespaces = map[string]bool{"empty": true}
	w.do("team", "viewer>ghost B=viewer{alice} C=dangling{bob}")
	w.do("other", "B=viewer{carl}")
	w.putRole("team", "viewer")
	w.putRole("team", "unheld")
	w.putRole("", "cluster-admin")
	w.put(kinds.ClusterRoleBindings(), "", "admins", &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "admins"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:masters"}},
	})
	return w
}

func TestUnknownRoleIsNotFoundWithNearestNames(t *testing.T) {
	w := newNamesEnv(t)
	alice := &inferencev1.Subject{Kind: "User", Name: "alice"}
	for name, test := range map[string]struct{ role, want string }{
		"a ClusterRole without its kind": {"cluster-admin", `Role "cluster-admin" not found in namespace "team"; did you mean clusterrole/cluster-admin?`},
		"a mistyped Role":                {"veiwer", "did you mean viewer?"},
		"a mistyped ClusterRole":         {"ClusterRole/cluster-admn", `ClusterRole "cluster-admn" not found; did you mean clusterrole/cluster-admin?`},
		"a Role without its kind":        {"ClusterRole/viewer", "did you mean viewer?"},
		"no near name":                   {"somethingelse", "; the Roles of this namespace are unheld, viewer"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := toRoleMessage(role(test.role))
			_, err := w.WhoHasRole(t.Context(), &inferencev1.WhoHasRoleRequest{Namespace: "team", Role: asked})
			expectRefused(t, err, connect.CodeNotFound, test.want)
			_, err = w.ExplainRole(t.Context(), &inferencev1.ExplainRoleRequest{Namespace: "team", Role: asked, Subject: alice})
			expectRefused(t, err, connect.CodeNotFound, test.want)
			_, err = w.GetInference(t.Context(), &inferencev1.GetInferenceRequest{Namespace: "team", Role: asked})
			expectRefused(t, err, connect.CodeNotFound, test.want)
			_, err = w.ListImplyingRoles(t.Context(), &inferencev1.ListImplyingRolesRequest{Namespace: "team", Role: asked})
			expectRefused(t, err, connect.CodeNotFound, test.want)
			_, err = w.ListInferences(t.Context(), &inferencev1.ListInferencesRequest{Namespace: "team", Parent: asked})
			expectRefused(t, err, connect.CodeNotFound, test.want)
		})
	}
}

func TestMissingRoleIsReportedIfBindingsOrRulesNameIt(t *testing.T) {
	w := newNamesEnv(t)
	held := must(w.WhoHasRole(t.Context(), &inferencev1.WhoHasRoleRequest{Namespace: "team", Role: toRoleMessage(role("dangling"))}))(t)
	if len(held.GetHolders()) != 1 || !held.GetRoleMissing() {
		t.Errorf("got %v, want one holder of a missing role", held)
	}
	implied := must(w.ListImplyingRoles(t.Context(), &inferencev1.ListImplyingRolesRequest{Namespace: "team", Role: toRoleMessage(role("ghost"))}))(t)
	if len(implied.GetRoles()) != 1 || !implied.GetRoleMissing() {
		t.Errorf("got %v, want one role that implies a missing one", implied)
	}
	w.do("team", "-B")
	_, err := w.WhoHasRole(t.Context(), &inferencev1.WhoHasRoleRequest{Namespace: "team", Role: toRoleMessage(role("ghost"))})
	expectRefused(t, err, connect.CodeNotFound, `Role "ghost" not found in namespace "team"`)
}

func TestNegativeAnswerNamesWhatWasConsidered(t *testing.T) {
	w := newNamesEnv(t)
	none := must(w.WhoHasRole(t.Context(), &inferencev1.WhoHasRoleRequest{Namespace: "team", Role: toRoleMessage(role("unheld"))}))(t)
	if c := none.GetConsidered(); len(none.GetHolders()) != 0 || none.GetRoleMissing() || c.GetRoleBindings() != 2 || c.GetClusterRoleBindings() != 1 || c.GetRules() != 1 {
		t.Errorf("got %v, want no holder, 2 RoleBindings, 1 ClusterRoleBinding and 1 rule", none)
	}
	no := must(w.ExplainRole(t.Context(), &inferencev1.ExplainRoleRequest{
		Namespace: "team", Role: toRoleMessage(role("unheld")), Subject: &inferencev1.Subject{Kind: "User", Name: "alice"},
	}))(t)
	if no.GetHeld() || no.GetConsidered().GetRoleBindings() != 2 {
		t.Errorf("got %v, want not held", no)
	}
}

func TestUnknownSubjectIsNotFound(t *testing.T) {
	w := newNamesEnv(t)
	for name, test := range map[string]struct {
		subject *inferencev1.Subject
		groups  []string
		want    string
	}{
		"a mistyped user":                {&inferencev1.Subject{Kind: "User", Name: "alcie"}, nil, `names user "alcie"; did you mean alice?`},
		"a service account":              {&inferencev1.Subject{Kind: "ServiceAccount", Name: "bot"}, nil, `names serviceaccount "bot".`},
		"a mistyped group":               {&inferencev1.Subject{Kind: "Group", Name: "system:mastres"}, nil, `did you mean system:masters?`},
		"a user whose groups are no one": {&inferencev1.Subject{Kind: "User", Name: "zoe"}, []string{"nobodys"}, `names user "zoe"`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := w.ExplainRole(t.Context(), &inferencev1.ExplainRoleRequest{
				Namespace: "team", Role: toRoleMessage(role("unheld")), Subject: test.subject, Groups: test.groups,
			})
			expectRefused(t, err, connect.CodeNotFound, test.want)
			_, err = w.ListEffectiveRoles(t.Context(), &inferencev1.ListEffectiveRolesRequest{Namespace: "team", Subject: test.subject, Groups: test.groups})
			expectRefused(t, err, connect.CodeNotFound, test.want)
		})
	}
	// carl has a binding in another namespace, and zoe's group has one.
	for who, groups := range map[string][]string{"carl": nil, "zoe": {"system:masters"}} {
		_, err := w.ExplainRole(t.Context(), &inferencev1.ExplainRoleRequest{
			Namespace: "team", Role: toRoleMessage(role("unheld")), Subject: &inferencev1.Subject{Kind: "User", Name: who}, Groups: groups,
		})
		if err != nil {
			t.Errorf("%s: %v", who, err)
		}
	}
	roles := must(w.ListEffectiveRoles(t.Context(), &inferencev1.ListEffectiveRolesRequest{
		Namespace: "team", Subject: &inferencev1.Subject{Kind: "User", Name: "zoe"}, Groups: []string{"system:masters"},
	}))(t)
	if len(roles.GetRoles()) != 1 || !roles.GetSubjectUnnamed() {
		t.Errorf("got %v, want the role of the group, and that no binding names the user", roles)
	}
}

func TestUnknownNamespaceIsNotFound(t *testing.T) {
	w := newNamesEnv(t)
	calls := map[string]func(namespace string) error{
		"who has": func(ns string) error {
			_, err := w.WhoHasRole(t.Context(), &inferencev1.WhoHasRoleRequest{Namespace: ns, Role: toRoleMessage(role("ClusterRole/cluster-admin"))})
			return err
		},
		"what has": func(ns string) error {
			_, err := w.ListEffectiveRoles(t.Context(), &inferencev1.ListEffectiveRolesRequest{Namespace: ns, Subject: &inferencev1.Subject{Kind: "Group", Name: "system:masters"}})
			return err
		},
		"rules": func(ns string) error {
			_, err := w.ListRules(t.Context(), &inferencev1.ListRulesRequest{Namespace: ns})
			return err
		},
		"drift": func(ns string) error {
			_, err := w.CheckDrift(t.Context(), &inferencev1.CheckDriftRequest{Namespace: ns})
			return err
		},
		"sync status": func(ns string) error {
			_, err := w.GetSyncStatus(t.Context(), &inferencev1.GetSyncStatusRequest{Namespace: ns})
			return err
		},
		"preview": func(ns string) error {
			_, err := w.PreviewBinding(t.Context(), &inferencev1.PreviewBindingRequest{Namespace: ns, Name: "b", Role: toRoleMessage(role("r"))})
			return err
		},
		"watch": func(ns string) error {
			return w.WatchInferences(t.Context(), &inferencev1.WatchInferencesRequest{Namespace: ns, ResumeToken: "none"}, &connect.ServerStream[inferencev1.WatchInferencesResponse]{})
		},
	}
	for name, call := range calls {
		expectRefused(t, call("teem"), connect.CodeNotFound, `namespace "teem" not found; did you mean team?`)
		if err := call("empty"); connect.CodeOf(err) == connect.CodeNotFound {
			t.Errorf("%s: %v in a namespace without objects", name, err)
		}
	}
}

func TestUnknownObjectOfPreviewIsNotFound(t *testing.T) {
	w := newNamesEnv(t)
	_, err := w.PreviewRules(t.Context(), &inferencev1.PreviewRulesRequest{
		Namespace: "team", Changes: []*inferencev1.RuleChange{{Name: "viewer>gohst", Remove: true}},
	})
	expectRefused(t, err, connect.CodeNotFound, "did you mean viewer>ghost?")
	_, err = w.PreviewBinding(t.Context(), &inferencev1.PreviewBindingRequest{Namespace: "team", Name: "none", Remove: true})
	expectRefused(t, err, connect.CodeNotFound, `no RoleBinding "none" in namespace "team"; the RoleBindings are B, C`)
	_, err = w.ExplainBinding(t.Context(), &inferencev1.ExplainBindingRequest{Namespace: "team", Name: "none"})
	expectRefused(t, err, connect.CodeNotFound, `the RoleBindings are B, C`)
	if !strings.Contains(err.Error(), "team") {
		t.Error(err)
	}
}
