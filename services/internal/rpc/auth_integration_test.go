//go:build integration

package rpc

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"connectrpc.com/connect"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	inferencev1 "github.com/entail-dev/entail/gen/entail/inference/v1"
	"github.com/entail-dev/entail/gen/entail/inference/v1/inferencev1connect"
	storev1 "github.com/entail-dev/entail/gen/entail/store/v1"
	"github.com/entail-dev/entail/gen/entail/store/v1/storev1connect"
	"github.com/entail-dev/entail/services/internal/devserver"
	"github.com/entail-dev/entail/services/internal/rbac"
	"github.com/entail-dev/entail/services/internal/topology"
)

// reviewCluster is a real API server with one user. The user may get the store "demo" and the path /entail/status, and
// has no other rights.
type reviewCluster struct {
	admin   *rest.Config
	service *rest.Config // the account of a service
	nobody  *rest.Config // a user without any right
	token   string       // of the service account "reader"
	asked   atomic.Int32 // requests of the service account
}

func startCluster(t *testing.T) *reviewCluster {
	t.Helper()
	binary, err := devserver.FindKubeLocal()
	if err != nil {
		t.Fatal(err)
	}
	users := append(rbac.AccountUserNames(), "nobody")
	server, err := devserver.StartKubeLocal(t.Context(), devserver.KubeLocalConfig{Binary: binary, Dir: t.TempDir(), Users: users, UnsafeNoFsync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	c := &reviewCluster{}
	if c.admin, err = server.AdminConfig(); err != nil {
		t.Fatal(err)
	}
	if c.service, err = server.UserConfig(topology.StoreSync); err != nil {
		t.Fatal(err)
	}
	if c.nobody, err = server.UserConfig("nobody"); err != nil {
		t.Fatal(err)
	}
	c.createReader(t)
	root, err := devserver.CheckoutRoot()
	if err != nil {
		t.Fatal(err)
	}
	if err := devserver.ApplyServiceAccounts(t.Context(), c.admin, os.DirFS(filepath.Join(root, "deploy"))); err != nil {
		t.Fatal(err)
	}
	c.service.Wrap(func(next http.RoundTripper) http.RoundTripper { return countingReviewer{next, &c.asked} })
	return c
}

type countingReviewer struct {
	http.RoundTripper
	n *atomic.Int32
}

func (c countingReviewer) RoundTrip(r *http.Request) (*http.Response, error) {
	c.n.Add(1)
	return c.RoundTripper.RoundTrip(r)
}

func (c *reviewCluster) createReader(t *testing.T) {
	t.Helper()
	ctx, must := t.Context(), func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	client, err := kubernetes.NewForConfig(c.admin)
	must(nil, err)
	name, options := metav1.ObjectMeta{Name: "reader"}, metav1.CreateOptions{}
	must(client.CoreV1().ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: name}, options))
	must(client.RbacV1().ClusterRoles().Create(ctx, &rbacv1.ClusterRole{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"get"}, APIGroups: []string{"core.platform-mesh.io"}, Resources: []string{"stores"}, ResourceNames: []string{"demo"}},
		{Verbs: []string{"get"}, NonResourceURLs: []string{"/entail/status"}},
	}}, options))
	must(client.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "reader"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "reader"}},
	}, options))
	request, err := client.CoreV1().ServiceAccounts("default").CreateToken(ctx, "reader", &authenticationv1.TokenRequest{}, options)
	must(nil, err)
	c.token = request.Status.Token
}

// call requests a store with a token.
func (tr *runningServer) call(ctx context.Context, procedure, store, token string) error {
	request := connect.NewRequest(&storev1.GetStoreRequest{Name: store})
	if token != "" {
		request.Header().Set("Authorization", "Bearer "+token)
	}
	_, err := connect.NewClient[storev1.GetStoreRequest, storev1.GetStoreResponse](tr.client, tr.url+procedure).CallUnary(ctx, request)
	return err
}

func TestAPIServerAuthorizesCallers(t *testing.T) {
	c := startCluster(t)
	handler := fakeStoreService{}.handler()
	handler.access[storev1connect.StoreServiceGetModelProcedure] = RequireVerbOnPath("get", "/entail/status")
	handler.access[storev1connect.StoreServiceListStoresProcedure] = RequireVerbOnPath("get", "/entail/other")
	tr := serve(t, func(cfg *Config) { cfg.Auth, cfg.Kube = AuthKubernetes, c.service }, handler)
	const (
		ok    = connect.Code(0)
		get   = storev1connect.StoreServiceGetStoreProcedure
		model = storev1connect.StoreServiceGetModelProcedure
		list  = storev1connect.StoreServiceListStoresProcedure
	)
	tests := map[string]struct {
		procedure, store, token string
		code                    connect.Code
		text                    string
	}{
		"allowed": {get, "demo", c.token, ok, ""},
		"other object": {
			get, "other", c.token, connect.CodePermissionDenied,
			`user "system:serviceaccount:default:reader" may not get stores.core.platform-mesh.io/other`,
		},
		"allowed path":  {model, "demo", c.token, ok, ""},
		"other path":    {list, "", c.token, connect.CodePermissionDenied, "may not get /entail/other"},
		"no token":      {get, "demo", "", connect.CodeUnauthenticated, "Authorization: Bearer"},
		"invented":      {get, "demo", "secret-of-nobody", connect.CodeUnauthenticated, "does not accept this token"},
		"cut":           {get, "demo", c.token[:len(c.token)-4], connect.CodeUnauthenticated, "does not accept this token"},
		"long name":     {get, strings.Repeat("a", 254), c.token, connect.CodeInvalidArgument, "name"},
		"invalid first": {get, "", c.token, connect.CodeInvalidArgument, "name"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := tr.call(t.Context(), test.procedure, test.store, test.token)
			if test.code == ok && err == nil {
				return
			}
			if connect.CodeOf(err) != test.code || !strings.Contains(err.Error(), test.text) {
				t.Fatalf("got %v, want %v: %s", err, test.code, test.text)
			}
		})
	}
	tr.log.mustNotHold(t, c.token)
	tr.log.mustNotHold(t, "secret-of-nobody")
}

func TestReviewsAreCached(t *testing.T) {
	c := startCluster(t)
	tr := serve(t, func(cfg *Config) { cfg.Auth, cfg.Kube = AuthKubernetes, c.service }, fakeStoreService{}.handler())
	for range 100 {
		if err := tr.call(t.Context(), storev1connect.StoreServiceGetStoreProcedure, "demo", c.token); err != nil {
			t.Fatal(err)
		}
	}
	if got := c.asked.Load(); got != 2 {
		t.Fatalf("got %d reviews for 100 calls, want one of the token and one of the right", got)
	}
}

func TestMissingReviewRightIsLogged(t *testing.T) {
	c := startCluster(t)
	tr := serve(t, func(cfg *Config) { cfg.Auth, cfg.Kube = AuthKubernetes, c.nobody }, fakeStoreService{}.handler())
	err := tr.call(t.Context(), storev1connect.StoreServiceGetStoreProcedure, "demo", c.token)
	if connect.CodeOf(err) != connect.CodeInternal {
		t.Fatalf("got %v", err)
	}
	tr.log.mustHold(t, "this service lacks the right")
}

func TestStreamIsAuthorizedByRequest(t *testing.T) {
	c := startCluster(t)
	tr := serve(t, func(cfg *Config) { cfg.Auth, cfg.Kube = AuthKubernetes, c.service }, tickingService{count: 1}.handler())
	client, err := kubernetes.NewForConfig(c.admin)
	if err != nil {
		t.Fatal(err)
	}
	name := metav1.ObjectMeta{Name: "rules"}
	if _, err := client.RbacV1().Roles("default").Create(t.Context(), &rbacv1.Role{ObjectMeta: name, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"list"}, APIGroups: []string{"role.k8s.com"}, Resources: []string{"impliedroles"}},
	}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := client.RbacV1().RoleBindings("default").Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "rules"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "default", Name: "reader"}},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for namespace, want := range map[string]connect.Code{"default": 0, "other": connect.CodePermissionDenied, "": connect.CodePermissionDenied} {
		request := connect.NewRequest(&inferencev1.WatchInferencesRequest{Namespace: namespace})
		request.Header().Set("Authorization", "Bearer "+c.token)
		stream, err := connect.NewClient[inferencev1.WatchInferencesRequest, inferencev1.WatchInferencesResponse](
			tr.client, tr.url+inferencev1connect.InferenceServiceWatchInferencesProcedure).CallServerStream(t.Context(), request)
		if err != nil {
			t.Fatal(err)
		}
		got := stream.Receive()
		if err := stream.Err(); want == 0 && (err != nil || !got) || want != 0 && connect.CodeOf(err) != want {
			t.Errorf("in %q: received %v, %v; want %v", namespace, got, err, want)
		}
		if err := stream.Close(); err != nil {
			t.Error(err)
		}
	}
}
