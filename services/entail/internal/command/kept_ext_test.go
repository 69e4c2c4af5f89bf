package command_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
)

// startListAPIServer starts an API server that only lists these objects, and returns a kubeconfig for it.
func startListAPIServer(t *testing.T, lists map[string]any) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		list, ok := lists[r.URL.Path]
		if !ok {
			http.Error(w, "you may not", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(list); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return written(t, fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "a", "clusters": [{"name": "a", "cluster": {"server": %q}}],
"contexts": [{"name": "a", "context": {"cluster": "a"}}]}`, server.URL))
}

func TestStatusListsOutdatedObjectsAndObjectStates(t *testing.T) {
	condition := func(typ, reason string) []metav1.Condition {
		return []metav1.Condition{{
			Type: typ, Status: metav1.ConditionFalse, Reason: reason, Message: "line 5: to revoke now, do so", LastTransitionTime: metav1.NewTime(time.Unix(1000, 0)),
		}}
	}
	store := func(name string, live *corev1alpha1.LiveCoreModule) corev1alpha1.Store {
		return corev1alpha1.Store{
			TypeMeta:   metav1.TypeMeta{APIVersion: corev1alpha1.GroupVersion.String(), Kind: "Store"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1alpha1.StoreStatus{Live: live, Conditions: condition(corev1alpha1.ModelSynced, corev1alpha1.InvalidCore)},
		}
	}
	module := func(name, reason string) corev1alpha1.AuthorizationModel {
		return corev1alpha1.AuthorizationModel{
			TypeMeta:   metav1.TypeMeta{APIVersion: corev1alpha1.GroupVersion.String(), Kind: "AuthorizationModel"},
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Status:     corev1alpha1.AuthorizationModelStatus{Conditions: condition(corev1alpha1.Merged, reason)},
		}
	}
	user := func(state string) any {
		return map[string]any{"apiVersion": "opensearch.org/v1", "kind": "OpensearchUser", "status": map[string]any{"state": state}}
	}
	list := func(kind string, items any) any {
		return map[string]any{"apiVersion": corev1alpha1.GroupVersion.String(), "kind": kind, "metadata": map[string]any{}, "items": items}
	}
	const path = "/apis/core.platform-mesh.io/v1alpha1/"
	lists := map[string]any{
		path + "stores":              list("StoreList", []any{store("kept", &corev1alpha1.LiveCoreModule{CoreModule: "module core"}), store("never-live", nil)}),
		path + "authorizationmodels": list("AuthorizationModelList", []any{module("docs", corev1alpha1.LastGoodLive), module("rejected", "Rejected")}),
	}
	document := func(name, module string) iaplv1alpha1.PolicyDocument {
		return iaplv1alpha1.PolicyDocument{
			TypeMeta:   metav1.TypeMeta{APIVersion: iaplv1alpha1.GroupVersion.String(), Kind: "PolicyDocument"},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team"},
			Status:     iaplv1alpha1.PolicyDocumentStatus{AuthorizationModel: module, Conditions: condition(iaplv1alpha1.Valid, "Invalid")},
		}
	}
	lists["/apis/"+iaplv1alpha1.GroupVersion.String()+"/policydocuments"] = map[string]any{
		"apiVersion": iaplv1alpha1.GroupVersion.String(), "kind": "PolicyDocumentList", "metadata": map[string]any{},
		"items": []any{document("policy", "policydocument.team.policy"), document("never-valid", "")},
	}
	for _, kind := range []string{"opensearchroles", "opensearchtenants", "opensearchactiongroups", "opensearchuserrolebindings"} {
		lists["/apis/opensearch.org/v1/"+kind] = list("List", []any{})
	}
	lists["/apis/opensearch.org/v1/opensearchusers"] = list("OpensearchUserList", []any{user("CREATED"), user("ERROR"), user("CREATED"), user("")})
	url := serve(t, fakeSyncService{}, nil)
	env := map[string]string{"KUBECONFIG": startListAPIServer(t, lists)}
	got := run(t, env, "status", "--server", url)
	const says = ": an earlier valid version is in force since 1970-01-01T00:16:40Z: line 5: to revoke now, do so\n"
	if got.code != 0 || !strings.HasSuffix(got.out, "store/kept"+says+"authorizationmodel/docs"+says+"policydocument/policy in namespace team"+says+"opensearchusers: 2 CREATED, 1 ERROR, 1 not seen yet\n") || got.err != "" {
		t.Errorf("%+v", got)
	}
	for _, format := range []string{"json", "yaml"} {
		got := run(t, env, "status", "--server", url, "-o", format)
		var is struct {
			DeadLetters  string
			EarlierTexts []struct{ Kind, Namespace, Name, Since, Message string }
		}
		if err := yaml.Unmarshal([]byte(got.out), &is); err != nil || got.code != 0 || got.err != "" || is.DeadLetters != "0" {
			t.Errorf("%s: %v, %+v", format, err, got)
		}
		const since, message = "1970-01-01T00:16:40Z", "line 5: to revoke now, do so"
		want := []struct{ Kind, Namespace, Name, Since, Message string }{
			{"Store", "", "kept", since, message}, {"AuthorizationModel", "", "docs", since, message}, {"PolicyDocument", "team", "policy", since, message},
		}
		if !slices.Equal(is.EarlierTexts, want) {
			t.Errorf("%s: got %+v, want %+v", format, is.EarlierTexts, want)
		}
	}
	if got := run(t, nil, "status", "--server", url, "-o", "json"); got.code != 0 || !strings.Contains(got.out, "deadLetters") || strings.Contains(got.out, "earlierTexts") {
		t.Errorf("for a program without a kubeconfig: %+v", got)
	}
	if got := run(t, nil, "status", "--server", url); got.code != 0 || got.err != "" || !strings.HasSuffix(got.out, "Not checked without a kubeconfig: modules with an invalid edit, and objects of OpenSearch.\n") {
		t.Errorf("without a kubeconfig: %+v", got)
	}
	env["KUBECONFIG"] = startListAPIServer(t, nil)
	if got := run(t, env, "status", "--server", url); got.code != 5 || !strings.Contains(got.err, "version in force: ") || !strings.Contains(got.err, "states of opensearchusers are not known: ") {
		t.Errorf("without the right to see them: %+v", got)
	}
}
