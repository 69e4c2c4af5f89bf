package query

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/services/implied-role/infer"
	"github.com/entail-dev/entail/services/internal/kinds"
)

func short(state inferencev1.BindingState) string {
	return strings.TrimPrefix(state.String(), "BINDING_STATE_")
}

func reasonTexts(reasons []*inferencev1.Reason) string {
	var list []string
	for _, r := range reasons {
		text := r.GetBinding()
		for _, s := range r.GetPath() {
			text += fmt.Sprintf(" %s>%s by %s", roleName(s.GetFrom()), roleName(s.GetTo()), strings.Join(s.GetRules(), "+"))
		}
		list = append(list, text+" "+short(r.GetState()))
	}
	return strings.Join(list, "; ")
}

func TestExplainRoleReturnsReasons(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b b>c x>c B1=a{u} B2=c{u} B3=x{v}")
	w.settle()
	w.putRole("team", "a")
	w.do("team", "B4=b{u}") // The implied bindings do not exist yet.
	ask := func(who, what string, paths int32) *inferencev1.ExplainRoleResponse {
		return must(w.ExplainRole(t.Context(), &inferencev1.ExplainRoleRequest{
			Namespace: "team", Subject: &inferencev1.Subject{Kind: "User", Name: who}, Role: toRoleMessage(role(what)), MaxPaths: paths,
		}))(t)
	}
	got := ask("u", "c", 0)
	want := "B2 EXPLICIT; B4 b>c by b>c PENDING; B1 a>b by a>b b>c by b>c SYNCED"
	if text := reasonTexts(got.GetReasons()); text != want || !got.GetHeld() || got.GetTruncated() {
		t.Errorf("%q, held %v, truncated %v; want %q", text, got.GetHeld(), got.GetTruncated(), want)
	}
	if got.GetReasons()[2].GetGeneratedBinding() != infer.GeneratedName("B1", role("c")) || got.GetReasons()[0].GetGeneratedBinding() != "" {
		t.Errorf("generated bindings %v", got.GetReasons())
	}
	if got := ask("u", "c", 1); len(got.GetReasons()) != 1 || !got.GetTruncated() {
		t.Errorf("at most one: %v", got)
	}
	if got := ask("v", "a", 0); got.GetHeld() || len(got.GetReasons()) != 0 {
		t.Errorf("not held: %v", got)
	}
}

func TestExplainBinding(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b b>c B1=a{u}")
	w.settle()
	ask := func(name string) *inferencev1.ExplainBindingResponse {
		return must(w.ExplainBinding(t.Context(), &inferencev1.ExplainBindingRequest{Namespace: "team", Name: name}))(t)
	}
	source := ask("B1")
	var implied []string
	for _, i := range source.GetImplied() {
		implied = append(implied, fmt.Sprintf("%s by %s %s", roleName(i.GetRole()), roleNames(i.GetPath()), short(i.GetState())))
	}
	if got := strings.Join(implied, "; "); got != "b by a b SYNCED; c by a b c SYNCED" || source.GetGenerated() || short(source.GetState()) != "EXPLICIT" {
		t.Errorf("source: %q, %v", got, source)
	}
	generated := ask(infer.GeneratedName("B1", role("c")))
	if !generated.GetGenerated() || generated.GetSource() != "B1" || short(generated.GetState()) != "SYNCED" ||
		reasonTexts(generated.GetReasons()) != "B1 a>b by a>b b>c by b>c SYNCED" || roleName(generated.GetRole()) != "c" {
		t.Errorf("generated: %v", generated)
	}
	w.do("team", "-b>c")
	if left := ask(infer.GeneratedName("B1", role("c"))); short(left.GetState()) != "PENDING" || len(left.GetReasons()) != 0 {
		t.Errorf("what is to go: %v", left)
	}
	w.do("team", "-B1 B2=a{v} "+infer.GeneratedName("B2", role("b"))+"=other{m}")
	taken := ask("B2").GetImplied()
	if len(taken) != 1 || short(taken[0].GetState()) != "CONFLICT" || taken[0].GetMessage() == "" {
		t.Errorf("taken: %v", taken)
	}
	_, err := w.ExplainBinding(t.Context(), &inferencev1.ExplainBindingRequest{Namespace: "team", Name: "none"})
	expectRefused(t, err, connect.CodeNotFound, `no RoleBinding "none"`)
}

func TestWhoHasRoleAndListEffectiveRoles(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b B1=a{u,v} B2=b{v} B3=b{w}")
	w.settle()
	var holders []string
	for token := "first"; token != ""; {
		page := must(w.WhoHasRole(t.Context(), &inferencev1.WhoHasRoleRequest{
			Namespace: "team", Role: toRoleMessage(role("b")), PageSize: 2, PageToken: strings.TrimPrefix(token, "first"),
		}))(t)
		for _, h := range page.GetHolders() {
			holders = append(holders, fmt.Sprintf("%s %s %s", h.GetSubject().GetName(), h.GetOrigin(), strings.Join(h.GetBindings(), "+")))
		}
		token = page.GetNextPageToken()
	}
	if got := strings.Join(holders, "; "); got != "u ORIGIN_IMPLIED B1; v ORIGIN_BOTH B1+B2; w ORIGIN_EXPLICIT B3" {
		t.Errorf("holders %q", got)
	}
	var roles []string
	for _, r := range must(w.ListEffectiveRoles(t.Context(), &inferencev1.ListEffectiveRolesRequest{
		Namespace: "team", Subject: &inferencev1.Subject{Kind: "User", Name: "v"},
	}))(t).GetRoles() {
		roles = append(roles, fmt.Sprintf("%s %s", roleName(r.GetRole()), r.GetOrigin()))
	}
	if got := strings.Join(roles, "; "); got != "a ORIGIN_EXPLICIT; b ORIGIN_BOTH" {
		t.Errorf("roles %q", got)
	}
}

func changeTexts(changes []*inferencev1.BindingChange) string {
	var list []string
	for _, c := range changes {
		list = append(list, fmt.Sprintf("%s %s:%s", strings.TrimPrefix(c.GetChange().String(), "CHANGE_"), c.GetSource(), roleName(c.GetRole())))
	}
	return strings.Join(list, "; ")
}

func TestCheckDriftComparesWithAPIServer(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b a>c a>d B=a{u}")
	w.settle()
	check := func() *inferencev1.CheckDriftResponse {
		return must(w.CheckDrift(t.Context(), &inferencev1.CheckDriftRequest{Namespace: "team"}))(t)
	}
	if got := check(); !got.GetInStep() {
		t.Errorf("in step: %v", got)
	}
	// These changes are not in the informer.
	key := w.cfg.State.BindingKey("team", infer.GeneratedName("B", role("b")))
	delete(w.live, key)
	key.Name = infer.GeneratedName("B", role("c"))
	altered := w.live[key]
	altered.Object = []byte(strings.ReplaceAll(string(altered.Object), `"u"`, `"mallory"`))
	w.live[key] = altered
	rule := key
	rule.GroupResource, rule.Name = kinds.ImpliedRoles().GroupResource, "a>d"
	delete(w.live, rule)
	got := check()
	if got.GetInStep() || changeTexts(got.GetMissing()) != "CREATED B:b" || changeTexts(got.GetAltered()) != "UPDATED B:c" || changeTexts(got.GetExtra()) != "DELETED B:d" {
		t.Errorf("drift %v", got)
	}
}

func TestCheckDriftListsBindingsOlderThanWebhooks(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b early=a{u} late=a{u} unrelated=z{u}")
	w.settle()
	w.guarded = time.Unix(1000, 0)
	late := w.cfg.State.BindingKey("team", "late")
	change := w.live[late]
	change.Object = []byte(strings.Replace(string(change.Object), `"metadata":{`, `"metadata":{"managedFields":[{"time":"1970-01-01T00:16:40Z"}],`, 1))
	w.live[late] = change
	got := must(w.CheckDrift(t.Context(), &inferencev1.CheckDriftRequest{Namespace: "team"}))(t)
	if names := got.GetUnjudgedBindings(); !slices.Equal(names, []string{"early"}) || got.GetUnjudgedBindingsTotal() != 1 || !got.GetInStep() {
		t.Errorf("got %v, want the binding early alone, and no difference", got)
	}
	w.guarded = time.Time{}
	if got := must(w.CheckDrift(t.Context(), &inferencev1.CheckDriftRequest{Namespace: "team"}))(t); got.GetUnjudgedBindingsTotal() != 0 {
		t.Errorf("without webhooks: got %v, want none", got)
	}
}

func TestGetSyncStatusCountsRemainingDifferences(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b a>c B=a{u} "+infer.GeneratedName("B", role("c"))+"=x{m}")
	w.do("other", "a>b")
	got := must(w.GetSyncStatus(t.Context(), &inferencev1.GetSyncStatusRequest{}))(t).GetNamespaces()
	if len(got) != 2 || got[0].GetNamespace() != "other" {
		t.Fatalf("namespaces %v", got)
	}
	if n := got[1]; n.GetRules() != 2 || n.GetWanted() != 2 || n.GetPending() != 2 || n.GetConflicts() != 1 || len(n.GetNotSynced()) != 2 || n.GetLastPass().GetSeconds() != 7 {
		t.Errorf("team: %v", n)
	}
}

func TestAnswersIncludeClusterRoleBindings(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "ClusterRole/edit>ClusterRole/view B=ClusterRole/edit{u}")
	w.settle()
	for name, who := range map[string]string{"editors": "v", "admins": "u"} {
		w.put(kinds.ClusterRoleBindings(), "", name, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "edit"},
			Subjects: []rbacv1.Subject{user(who)},
		})
	}
	edit, v := &inferencev1.Role{Kind: "ClusterRole", Name: "edit"}, &inferencev1.Subject{Kind: "User", Name: "v"}
	holders := must(w.WhoHasRole(t.Context(), &inferencev1.WhoHasRoleRequest{Namespace: "team", Role: edit}))(t).GetHolders()
	if len(holders) != 2 || strings.Join(holders[0].GetBindings(), " ") != "B ClusterRoleBinding/admins" ||
		strings.Join(holders[1].GetBindings(), " ") != "ClusterRoleBinding/editors" {
		t.Errorf("holders %v", holders)
	}
	reasons := must(w.ExplainRole(t.Context(), &inferencev1.ExplainRoleRequest{Namespace: "team", Subject: v, Role: edit}))(t).GetReasons()
	if len(reasons) != 1 || reasons[0].GetBinding() != "ClusterRoleBinding/editors" || short(reasons[0].GetState()) != "EXPLICIT" {
		t.Errorf("reasons %v", reasons)
	}
	roles := must(w.ListEffectiveRoles(t.Context(), &inferencev1.ListEffectiveRolesRequest{Namespace: "team", Subject: v}))(t).GetRoles()
	if len(roles) != 1 || roleName(roles[0].GetRole()) != "ClusterRole/edit" {
		t.Errorf("effective %v: it implies nothing", roles)
	}
	gains := must(w.PreviewBinding(t.Context(), &inferencev1.PreviewBindingRequest{
		Namespace: "team", Name: "new", Role: edit, Subjects: []*inferencev1.Subject{v},
	}))(t).GetPreview().GetSubjects()
	if len(gains) != 1 || roleNames(gains[0].GetGained()) != "ClusterRole/view" {
		t.Errorf("gains %v: it has the other already", gains)
	}
}
