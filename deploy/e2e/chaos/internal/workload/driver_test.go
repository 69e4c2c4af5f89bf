package workload

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// api is an API server that returns the given status codes one after the other, and then accepts every request.
type api struct {
	t     *testing.T
	mu    sync.Mutex
	codes []int
	texts []string
	asked []string
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked := r.Method
	if r.Method == http.MethodPatch {
		asked = map[string]string{"application/apply-patch+yaml": "APPLY", "application/merge-patch+json": "STRIP"}[r.Header.Get("Content-Type")]
	}
	a.asked = append(a.asked, asked+" "+r.URL.Path)
	code, answer := http.StatusOK, any(map[string]any{"apiVersion": "v1", "kind": "X", "metadata": map[string]any{"name": "x"}})
	if len(a.codes) > 0 {
		if a.codes[0] != http.StatusOK {
			code = a.codes[0]
			answer = metav1.Status{
				TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Message: a.texts[0],
				Reason: map[int]metav1.StatusReason{http.StatusNotFound: metav1.StatusReasonNotFound, http.StatusUnprocessableEntity: metav1.StatusReasonInvalid}[code],
			}
		}
		a.codes, a.texts = a.codes[1:], a.texts[1:]
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		a.t.Error(err)
	}
}

func drive(t *testing.T, a *api) *Driver {
	t.Helper()
	a.t = t
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	d, err := NewDriver(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestOperationRunsItsSteps(t *testing.T) {
	const path = "/apis/core.platform-mesh.io/v1alpha1/stores/store-0"
	for verb, want := range map[OperationVerb][]string{
		Apply: {"APPLY " + path}, Delete: {"DELETE " + path}, Replace: {"DELETE " + path, "APPLY " + path},
		Strip: {"STRIP " + path, "DELETE " + path, "APPLY " + path},
	} {
		a := &api{}
		o := Operation{Verb: verb, Resource: StoreResource(), Object: newObject(StoreResource(), "Store", "", "store-0")}
		if err := drive(t, a).Execute(t.Context(), o); err != nil || !slices.Equal(a.asked, want) {
			t.Errorf("%s: asked %v, %v", verb, a.asked, err)
		}
	}
	a := &api{}
	spaced := Operation{Verb: Delete, Resource: RoleBindingResource(), Object: newObject(RoleBindingResource(), "RoleBinding", "team-0", "b")}
	if err := drive(t, a).Execute(t.Context(), spaced); err != nil || a.asked[0] != "DELETE /apis/rbac.authorization.k8s.io/v1/namespaces/team-0/rolebindings/b" {
		t.Errorf("asked %v, %v", a.asked, err)
	}
}

func TestOperationRetriesOutageNotRefusal(t *testing.T) {
	o := Operation{Verb: Apply, Resource: StoreResource(), Object: newObject(StoreResource(), "Store", "", "store-0"), Summary: "as it was"}
	for name, test := range map[string]struct {
		verb  OperationVerb
		codes []int
		texts []string
		asked int
		want  string
	}{
		"away for a moment":              {verb: Apply, codes: []int{500, 403}, texts: []string{"", ""}, asked: 3},
		"a policy that is not there yet": {verb: Apply, codes: []int{422}, texts: []string{"failed to configure policy"}, asked: 2},
		"refused":                        {verb: Apply, codes: []int{422}, texts: []string{"spec.name is too long"}, asked: 1, want: "apply stores/store-0 (as it was): spec.name is too long"},
		"gone before it was deleted":     {verb: Delete, codes: []int{404}, texts: []string{""}, asked: 1},
		"gone before it was stripped":    {verb: Strip, codes: []int{404, 404}, texts: []string{"", ""}, asked: 3},
	} {
		t.Run(name, func(t *testing.T) {
			a := &api{codes: test.codes, texts: test.texts}
			o.Verb = test.verb
			err := drive(t, a).Execute(t.Context(), o)
			if len(a.asked) != test.asked || (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
				t.Errorf("asked %v, %v", a.asked, err)
			}
		})
	}
}

func TestIsRefusal(t *testing.T) {
	kind := schema.GroupKind{Kind: "Store"}
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"invalid":               {apierrors.NewInvalid(kind, "x", nil), true},
		"no sense":              {apierrors.NewBadRequest("no"), true},
		"a policy starts":       {apierrors.NewBadRequest("failed to configure policy"), false},
		"forbidden for a while": {apierrors.NewForbidden(schema.GroupResource{}, "x", errors.New("no")), false},
		"a conflict":            {apierrors.NewConflict(schema.GroupResource{}, "x", errors.New("no")), false},
		"away":                  {errors.New("connection refused"), false},
	} {
		if got := isRefused(test.err); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestUnreadableListIsError(t *testing.T) {
	d := drive(t, &api{codes: []int{403}, texts: []string{"you may not"}})
	if _, err := d.List(t.Context(), storeKind()); err == nil || !strings.Contains(err.Error(), "you may not") {
		t.Errorf("got %v", err)
	}
	if _, err := NewDriver(&rest.Config{Host: "://"}); err == nil || !strings.Contains(err.Error(), "connecting the driver") {
		t.Errorf("an address that is none: %v", err)
	}
}

func TestBaseObjectsAreNeverDeletedForGood(t *testing.T) {
	prepared := map[string]bool{}
	for _, o := range InitialOperations() {
		if o.Verb != Apply || prepared[o.Key()] {
			t.Errorf("prepared is %s", o)
		}
		prepared[o.Key()] = true
	}
	for _, want := range []string{"namespaces/team-0", "customresourcedefinitions/gears.chaos.example"} {
		if !prepared[want] {
			t.Errorf("%s is not prepared: %v", want, prepared)
		}
	}
}
