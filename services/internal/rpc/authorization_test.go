package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"

	"connectrpc.com/connect"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	"github.com/entail-dev/entail/services/internal/event"
)

// fakeReviewServer is an API server that answers token and access reviews, or fails with a code.
type fakeReviewServer struct {
	t  *testing.T
	mu sync.Mutex
	// users holds users by token. rights holds the granted rights, such as "alice may get …".
	users  map[string]authenticationv1.UserInfo
	rights map[string]bool
	// failing holds the error code of the answers, by resource.
	failing map[string]int
	tokens  []string
	asked   []authorizationv1.SubjectAccessReviewSpec
}

func (v *fakeReviewServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.mu.Lock()
	defer v.mu.Unlock()
	resource := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]
	var answer any
	switch resource {
	case "tokenreviews":
		var review authenticationv1.TokenReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		v.tokens = append(v.tokens, review.Spec.Token)
		review.Status.User, review.Status.Authenticated = v.users[review.Spec.Token], v.users[review.Spec.Token].Username != ""
		answer = review
	case "subjectaccessreviews":
		var review authorizationv1.SubjectAccessReview
		_ = json.NewDecoder(r.Body).Decode(&review)
		v.asked = append(v.asked, review.Spec)
		review.Status.Allowed = v.rights[review.Spec.User+" may "+rightOf(review.Spec).String()]
		answer = review
	}
	w.Header().Set("Content-Type", "application/json")
	code := http.StatusCreated
	if failing := v.failing[resource]; failing != 0 {
		code, answer = failing, metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(failing),
			Reason: map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusUnauthorized: metav1.StatusReasonUnauthorized}[failing],
		}
	}
	w.WriteHeader(code)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		v.t.Error(err)
	}
}

func rightOf(spec authorizationv1.SubjectAccessReviewSpec) RequiredRight {
	if spec.NonResourceAttributes != nil {
		return RequiredRight{Verb: spec.NonResourceAttributes.Verb, Path: spec.NonResourceAttributes.Path}
	}
	about := spec.ResourceAttributes
	return RequiredRight{
		Verb: about.Verb, GroupResource: event.GroupResource{Group: about.Group, Resource: about.Resource},
		Namespace: about.Namespace, Name: about.Name,
	}
}

const (
	aliceToken = "token-of-alice"
	bobToken   = "token-of-bob"
)

// startReviewedServer runs a server whose reviews v answers. alice may get the store "demo", and bob has no rights.
func startReviewedServer(t *testing.T, handlers ...Handler) (*runningServer, *fakeReviewServer) {
	t.Helper()
	v := &fakeReviewServer{
		t: t,
		users: map[string]authenticationv1.UserInfo{
			aliceToken: {Username: "alice", UID: "1", Groups: []string{"staff"}, Extra: map[string]authenticationv1.ExtraValue{"scope": {"a", "b"}}},
			bobToken:   {Username: "bob"},
		},
		rights:  map[string]bool{"alice may get stores.core.platform-mesh.io/demo": true},
		failing: map[string]int{},
	}
	server := httptest.NewServer(v)
	t.Cleanup(server.Close)
	kube := &rest.Config{Host: server.URL}
	kube.ContentType = "application/json"
	return serve(t, func(c *Config) { c.Auth, c.Kube = AuthKubernetes, kube }, handlers...), v
}

// getStore requests a store with an Authorization header.
func (tr *runningServer) getStore(t *testing.T, name, authorization string) error {
	t.Helper()
	request := connect.NewRequest(&storev1.GetStoreRequest{Name: name})
	request.Header().Set("Authorization", authorization)
	client := connect.NewClient[storev1.GetStoreRequest, storev1.GetStoreResponse](tr.client, tr.url+storev1connect.StoreServiceGetStoreProcedure)
	_, err := client.CallUnary(t.Context(), request)
	return err
}

const fine connect.Code = 0

func codeOf(err error) connect.Code {
	if err == nil {
		return fine
	}
	return connect.CodeOf(err)
}

func TestCallRequiresAuthenticationAndAuthorization(t *testing.T) {
	for name, test := range map[string]struct {
		store, authorization string
		tokens, rights       int // the error codes of the API server
		code                 connect.Code
		text                 string // what the caller reads
		log                  string
	}{
		"may":                           {store: "demo", authorization: "Bearer " + aliceToken, code: fine},
		"the scheme in small letters":   {store: "demo", authorization: "bearer  " + aliceToken, code: fine},
		"may not this one":              {store: "other", authorization: "Bearer " + aliceToken, code: connect.CodePermissionDenied, text: `user "alice" may not get stores.core.platform-mesh.io/other: ask for a role that allows it`},
		"another may not":               {store: "demo", authorization: "Bearer " + bobToken, code: connect.CodePermissionDenied, text: `user "bob" may not get`},
		"nobody's token":                {store: "demo", authorization: "Bearer stolen", code: connect.CodeUnauthenticated, text: "does not accept this token"},
		"a name that none can have":     {store: strings.Repeat("a", 254), authorization: "Bearer " + aliceToken, code: connect.CodeInvalidArgument, text: "name"},
		"we may not review tokens":      {store: "demo", authorization: "Bearer " + aliceToken, tokens: http.StatusForbidden, code: connect.CodeInternal, text: "the server's log tells the cause", log: "reviewing a token: this service lacks the right"},
		"we are not known":              {store: "demo", authorization: "Bearer " + aliceToken, tokens: http.StatusUnauthorized, code: connect.CodeInternal, text: "the server's log tells the cause", log: "reviewing a token: the API server does not accept the credentials"},
		"we may not review rights":      {store: "demo", authorization: "Bearer " + aliceToken, rights: http.StatusForbidden, code: connect.CodeInternal, text: "the server's log tells the cause", log: "reviewing a right: this service lacks the right"},
		"tokens cannot be reviewed now": {store: "demo", authorization: "Bearer " + aliceToken, tokens: http.StatusInternalServerError, code: connect.CodeUnavailable, text: "is not reachable; try again", log: "reviewing a token"},
		"rights cannot be reviewed now": {store: "demo", authorization: "Bearer " + aliceToken, rights: http.StatusInternalServerError, code: connect.CodeUnavailable, text: "is not reachable; try again", log: "reviewing a right"},
	} {
		t.Run(name, func(t *testing.T) {
			tr, v := startReviewedServer(t, fakeStoreService{}.handler())
			v.failing["tokenreviews"], v.failing["subjectaccessreviews"] = test.tokens, test.rights
			err := tr.getStore(t, test.store, test.authorization)
			if codeOf(err) != test.code || err != nil && !strings.Contains(err.Error(), test.text) {
				t.Errorf("the caller reads %v, want %v: %s", err, test.code, test.text)
			}
			tr.log.mustHold(t, test.log)
			tr.log.mustNotHold(t, aliceToken)
		})
	}
}

func TestAccessReviewHasAllUserInfo(t *testing.T) {
	tr, v := startReviewedServer(t, fakeStoreService{}.handler())
	if err := tr.getStore(t, "demo", "Bearer "+aliceToken); err != nil {
		t.Fatal(err)
	}
	want := authorizationv1.SubjectAccessReviewSpec{
		User: "alice", UID: "1", Groups: []string{"staff"}, Extra: map[string]authorizationv1.ExtraValue{"scope": {"a", "b"}},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Group: "core.platform-mesh.io", Resource: "stores", Name: "demo"},
	}
	if len(v.asked) != 1 || !reflect.DeepEqual(v.asked[0], want) {
		t.Errorf("got reviews %+v, want %+v", v.asked, want)
	}
}

func TestReviewCacheKeyHasTokenAndRight(t *testing.T) {
	tr, v := startReviewedServer(t, fakeStoreService{}.handler())
	for range 3 {
		for _, store := range []string{"demo", "other"} {
			for _, token := range []string{aliceToken, bobToken, "stolen"} {
				allowed := store == "demo" && token == aliceToken
				if err := tr.getStore(t, store, "Bearer "+token); (err == nil) != allowed {
					t.Errorf("%s for %s: %v", store, token, err)
				}
			}
		}
	}
	if len(v.tokens) != 3 || len(v.asked) != 4 {
		t.Errorf("got %d token and %d access reviews, want three and two for each known user", len(v.tokens), len(v.asked))
	}
}

// TestAddNameSuggestionsRequiresListRight covers CheckRight, too.
func TestAddNameSuggestionsRequiresListRight(t *testing.T) {
	stores := event.GroupResource{Group: "core.platform-mesh.io", Resource: "stores"}
	get := func(ctx context.Context, r *storev1.GetStoreRequest) (*storev1.GetStoreResponse, error) {
		return nil, AddNameSuggestions(ctx, NotFoundError("there is no Store %q", r.GetName()), stores, r.GetName(), func() []string { return []string{"dem"} })
	}
	tr, v := startReviewedServer(t, fakeStoreService{get: get}.handler())
	for _, test := range []struct {
		may  bool
		want string
	}{
		{false, `not_found: there is no Store "demo"`}, {true, `not_found: there is no Store "demo"; did you mean dem?`},
	} {
		v.rights["alice may list stores.core.platform-mesh.io"] = test.may
		token := map[bool]string{false: aliceToken, true: "another-of-alice"}[test.may] // Answers are cached by token.
		v.users[token] = v.users[aliceToken]
		if err := tr.getStore(t, "demo", "Bearer "+token); err == nil || err.Error() != test.want {
			t.Errorf("may list: %t: got %v, want %s", test.may, err, test.want)
		}
	}
	open := serve(t, nil, fakeStoreService{get: get}.handler())
	if err := open.getStore(t, "demo", ""); err == nil || !strings.HasSuffix(err.Error(), "did you mean dem?") {
		t.Errorf("without authentication: got %v, want a suggestion", err)
	}
}

func TestStreamIsAuthorizedBeforeFirstMessage(t *testing.T) {
	further := RequiredRight{Verb: "get", GroupResource: event.GroupResource{Group: "role.k8s.com", Resource: "impliedroles"}, Namespace: "team-a", Name: "x"}
	tr, v := startReviewedServer(t, tickingService{count: 1}.handler())
	strict, w := startReviewedServer(t, tickingService{count: 1, right: further}.handler())
	v.rights["alice may list impliedroles.role.k8s.com/team-a"] = true
	w.rights["alice may list impliedroles.role.k8s.com/team-a"] = true
	for name, test := range map[string]struct {
		server           *runningServer
		namespace, token string
		code             connect.Code
	}{
		"its namespace":     {tr, "team-a", aliceToken, fine},
		"another namespace": {tr, "team-b", aliceToken, connect.CodePermissionDenied},
		"every namespace":   {tr, "", aliceToken, connect.CodePermissionDenied},
		"a stolen token":    {tr, "team-a", "stolen", connect.CodeUnauthenticated},
		"a further right":   {strict, "team-a", aliceToken, connect.CodePermissionDenied},
	} {
		t.Run(name, func(t *testing.T) {
			request := connect.NewRequest(&inferencev1.WatchInferencesRequest{Namespace: test.namespace})
			request.Header().Set("Authorization", "Bearer "+test.token)
			stream, err := connect.NewClient[inferencev1.WatchInferencesRequest, inferencev1.WatchInferencesResponse](
				test.server.client, test.server.url+inferencev1connect.InferenceServiceWatchInferencesProcedure).CallServerStream(t.Context(), request)
			if err != nil {
				t.Fatal(err)
			}
			defer stream.Close()
			got := stream.Receive()
			if code := codeOf(stream.Err()); code != test.code || got != (test.code == fine) {
				t.Errorf("received %t, %v", got, stream.Err())
			}
		})
	}
}

func TestAccessRuleDeterminesReview(t *testing.T) {
	stores := event.GroupResource{Group: "core.platform-mesh.io", Resource: "stores"}
	store := &storev1.GetStoreRequest{Name: "demo"}
	watch := &inferencev1.WatchInferencesRequest{Namespace: "team-a"}
	for name, test := range map[string]struct {
		rule    AccessRule
		request any
		want    string
	}{
		"all of a kind":      {RequireVerb("list", stores), store, "list stores.core.platform-mesh.io"},
		"what it names":      {RequireVerbOnName("get", stores, (*storev1.GetStoreRequest).GetName), store, "get stores.core.platform-mesh.io/demo"},
		"its namespace":      {RequireVerbInNamespace("list", stores, (*inferencev1.WatchInferencesRequest).GetNamespace), watch, "list stores.core.platform-mesh.io/team-a"},
		"a path":             {RequireVerbOnPath("get", "/entail/status"), store, "get /entail/status"},
		"of another's name":  {rule: RequireVerbOnName("get", stores, (*storev1.GetStoreRequest).GetName), request: watch},
		"of another's place": {rule: RequireVerbInNamespace("list", stores, (*inferencev1.WatchInferencesRequest).GetNamespace), request: store},
	} {
		t.Run(name, func(t *testing.T) {
			right, err := test.rule(test.request)
			if test.want == "" {
				if err == nil || !strings.Contains(err.Error(), "access rule for") {
					t.Errorf("a request of another procedure asks for %s, %v", right, err)
				}
				return
			}
			if err != nil || right.String() != test.want {
				t.Errorf("it asks for %q, %v; want %q", right, err, test.want)
			}
		})
	}
}

func TestCallWithoutCallerOrRuleIsRefused(t *testing.T) {
	known := authenticatedCaller{user: authenticationv1.UserInfo{Username: "alice"}}
	rules := map[string]AccessRule{"/known": RequireVerb("get", event.GroupResource{Resource: "stores"})}
	for name, test := range map[string]struct {
		procedure string
		who       any
	}{"nobody": {procedure: "/known"}, "no rule": {procedure: "/other", who: known}} {
		ctx := t.Context()
		if test.who != nil {
			ctx = context.WithValue(ctx, callerKey{}, known)
		}
		if err := (authorizationInterceptor{reviewer: emptyReviewer(1), access: rules}).checkAccess(ctx, test.procedure, nil); err == nil || !strings.Contains(err.Error(), "without a caller or a rule") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKubernetesAuthRequiresConfig(t *testing.T) {
	for name, cfg := range map[string]*rest.Config{"none": nil, "no address": {Host: "://"}} {
		if r, err := newAccessReviewer(cfg); err == nil {
			t.Errorf("%s: %v", name, r)
		}
	}
	for auth, wrong := range map[AuthMode]bool{AuthKubernetes: false, AuthNone: false, "": true, "basic": true} {
		if err := auth.Validate(); (err != nil) != wrong || err != nil && !strings.Contains(err.Error(), fmt.Sprintf("%q is unknown", auth)) {
			t.Errorf("%q: %v", auth, err)
		}
	}
}
