package query

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"connectrpc.com/connect"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	"github.com/entail-dev/entail/services/internal/rpc"
)

const seed = "admin>developer admin>reviewer developer>writer writer>pro writer>noob"

func TestEveryProcedureRequiresRightInNamespace(t *testing.T) {
	access := RequiredAccess()
	service := inferencev1.File_entail_inference_v1_inference_proto.Services().ByName("InferenceService")
	for i := range service.Methods().Len() {
		method := service.Methods().Get(i)
		rule := access["/"+inferencev1connect.InferenceServiceName+"/"+string(method.Name())]
		if rule == nil {
			t.Errorf("%s has no rule", method.Name())
		}
	}
	right, err := access[inferencev1connect.InferenceServiceWhoHasRoleProcedure](&inferencev1.WhoHasRoleRequest{Namespace: "team"})
	if err != nil || right.String() != "list rolebindings.rbac.authorization.k8s.io/team" {
		t.Errorf("who-has needs %q, %v", right, err)
	}
	right, err = access[inferencev1connect.InferenceServiceListRulesProcedure](&inferencev1.ListRulesRequest{})
	if want := (rpc.RequiredRight{Verb: "list", GroupResource: right.GroupResource}); err != nil || right != want || right.Resource != "impliedroles" {
		t.Errorf("listing all rules needs %+v, %v", right, err)
	}
}

func TestListInferencesOfWorkedExample(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", seed)
	list := func() string {
		return rowTexts(must(w.ListInferences(t.Context(), &inferencev1.ListInferencesRequest{Namespace: "team"}))(t).GetInferences())
	}
	if got := list(); got != "team/admin: developer noob pro reviewer writer; team/developer: noob pro writer; team/writer: noob pro" {
		t.Errorf("with all rules: %s", got)
	}
	w.do("team", "-developer>writer")
	if got := list(); got != "team/admin: developer reviewer; team/writer: noob pro" {
		t.Errorf("without developer>writer: %s", got)
	}
}

// TestEveryMethodRefusesIncompleteInformer calls every unary method.
func TestEveryMethodRefusesIncompleteInformer(t *testing.T) {
	w := newQueryEnv(t)
	w.incomplete.Store(true)
	server := reflect.ValueOf(w.Server)
	n := 0
	for _, method := range server.Methods() {
		if method.Type().NumIn() != 2 || method.Type().NumOut() != 2 {
			continue
		}
		n++
		results := method.Call([]reflect.Value{reflect.ValueOf(t.Context()), reflect.New(method.Type().In(1).Elem())})
		err, _ := reflect.TypeAssert[error](results[1])
		expectRefused(t, err, connect.CodeUnavailable, errMissing.Error())
	}
	if n != 12 {
		t.Errorf("%d methods were called", n)
	}
	watching := &inferenceWatch{server: w.Server}
	expectRefused(t, watching.resumeOrSendSnapshot(""), connect.CodeUnavailable, errMissing.Error())
}

// TestEveryMethodHonorsMinRevision calls every unary method.
func TestEveryMethodHonorsMinRevision(t *testing.T) {
	w := newQueryEnv(t)
	call := func(method reflect.Value, revision string) error {
		request := reflect.New(method.Type().In(1).Elem())
		request.Elem().FieldByName("MinRevision").SetString(revision)
		err, _ := reflect.TypeAssert[error](method.Call([]reflect.Value{reflect.ValueOf(t.Context()), request})[1])
		return err
	}
	for _, method := range reflect.ValueOf(w.Server).Methods() {
		if method.Type().NumIn() != 2 || method.Type().NumOut() != 2 {
			continue
		}
		w.awaited = ""
		if _ = call(method, "7@1970-01-01T00:01:00Z"); w.awaited != "7 60" {
			t.Errorf("%s waited for %q", method.Type().In(1), w.awaited)
		}
		w.incomplete.Store(true)
		expectRefused(t, call(method, "7@1970-01-01T00:01:00Z"), connect.CodeUnavailable, errMissing.Error())
		w.incomplete.Store(false)
		expectRefused(t, call(method, "seven"), connect.CodeInvalidArgument, `min_revision: "seven" is not a revision: there is no @ in it; give the revision of an earlier answer, such as 42@`)
	}
}

func TestPagesOfAllNamespacesAreSorted(t *testing.T) {
	w := newQueryEnv(t)
	var want []string
	for _, namespace := range []string{"a", "a-b", "b"} {
		w.do(namespace, "r>x r>ClusterRole/x ClusterRole/r>x r-1>x")
		want = append(want, namespace+"/r: x ClusterRole/x", namespace+"/ClusterRole/r: x", namespace+"/r-1: x")
	}
	var got []string
	rules, token := 0, ""
	for {
		page := must(w.ListInferences(t.Context(), &inferencev1.ListInferencesRequest{PageSize: 2, PageToken: token}))(t)
		for _, row := range page.GetInferences() {
			got = append(got, rowText(row))
		}
		if page.GetRevision() != "12" || !page.GetSynced() {
			t.Errorf("page says %q, %v", page.GetRevision(), page.GetSynced())
		}
		if token = page.GetNextPageToken(); token == "" {
			break
		}
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		t.Errorf("%s\nwant %s", got, want)
	}
	for token = "first"; token != ""; {
		page := must(w.ListRules(t.Context(), &inferencev1.ListRulesRequest{PageSize: 5, PageToken: strings.TrimPrefix(token, "first")}))(t)
		rules += len(page.GetRules())
		token = page.GetNextPageToken()
	}
	if rules != 12 {
		t.Errorf("%d rules", rules)
	}
	filtered := must(w.ListInferences(t.Context(), &inferencev1.ListInferencesRequest{Namespace: "b", Parent: toRoleMessage(role("ClusterRole/r"))}))(t)
	if got := rowTexts(filtered.GetInferences()); got != "b/ClusterRole/r: x" {
		t.Errorf("filtered %s", got)
	}
}

func TestGetInferenceAndListImplyingRoles(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", seed)
	row := must(w.GetInference(t.Context(), &inferencev1.GetInferenceRequest{Namespace: "team", Role: toRoleMessage(role("admin"))}))(t).GetInference()
	if rowText(row) != "team/admin: developer noob pro reviewer writer" || roleNames(row.GetDirect()) != "developer reviewer" ||
		strings.Join(row.GetRules(), " ") != "admin>developer admin>reviewer" {
		t.Errorf("row %v", row)
	}
	w.putRole("team", "none")
	none := must(w.GetInference(t.Context(), &inferencev1.GetInferenceRequest{Namespace: "team", Role: toRoleMessage(role("none"))}))(t).GetInference()
	if len(none.GetChildRoles())+len(none.GetDirect())+len(none.GetRules()) != 0 {
		t.Errorf("row of no role: %v", none)
	}
	var parents []string
	for _, r := range must(w.ListImplyingRoles(t.Context(), &inferencev1.ListImplyingRolesRequest{Namespace: "team", Role: toRoleMessage(role("writer"))}))(t).GetRoles() {
		parents = append(parents, fmt.Sprintf("%s %v", roleName(r.GetRole()), r.GetDirect()))
	}
	if got := strings.Join(parents, "; "); got != "admin false; developer true" {
		t.Errorf("implying %q", got)
	}
}

func TestListRulesHasStatus(t *testing.T) {
	w := newQueryEnv(t)
	w.do("team", "a>b b>a c>d e>ClusterRole/cluster-admin")
	var got []string
	for _, r := range must(w.ListRules(t.Context(), &inferencev1.ListRulesRequest{Namespace: "team"}))(t).GetRules() {
		got = append(got, fmt.Sprintf("%s accepted=%v cycle=%v synced=%v %s", r.GetName(), r.GetAccepted(), r.GetInCycle(), r.GetSynced(), r.GetReason()))
	}
	want := "a>b accepted=true cycle=true synced=false Pending; b>a accepted=true cycle=true synced=false Pending; " +
		"c>d accepted=true cycle=false synced=false Pending; e>ClusterRole/cluster-admin accepted=false cycle=false synced=false ProhibitedRole"
	if text := strings.Join(got, "; "); text != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}
