//go:build integration

package integration

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

func TestIdentities(t *testing.T) {
	dataDir := t.TempDir()
	p := launch(t, dataDir, "--user", "alice:dev,ops", "--user", "root:system:masters", "--user", "system:serviceaccount:default:ci")
	alice := p.config(t, filepath.Join(dataDir, "alice.kubeconfig"))

	t.Run("a user has the groups that were asked for", func(t *testing.T) {
		user := whoAmI(t, alice)
		if user.Username != "alice" || !slices.Equal(user.Groups, []string{"dev", "ops", "system:authenticated"}) {
			t.Errorf("user = %s in %q, want alice in dev and ops", user.Username, user.Groups)
		}
	})
	t.Run("a service account has the groups of its tokens", func(t *testing.T) {
		accounts := p.admin(t).CoreV1().ServiceAccounts("default")
		if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "ci"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		token, err := accounts.CreateToken(t.Context(), "ci", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		byToken := rest.AnonymousClientConfig(alice)
		byToken.BearerToken = token.Status.Token
		want, user := whoAmI(t, byToken), whoAmI(t, p.config(t, filepath.Join(dataDir, "ci.kubeconfig")))
		if user.Username != want.Username || !slices.Equal(user.Groups, want.Groups) {
			t.Errorf("user = %s in %q, want %s in %q", user.Username, user.Groups, want.Username, want.Groups)
		}
	})
	t.Run("a user may do nothing until told so, an admin everything", func(t *testing.T) {
		namespaces := kubernetes.NewForConfigOrDie(alice).CoreV1().Namespaces()
		if _, err := namespaces.List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
			t.Errorf("list by alice = %v, want forbidden", err)
		}
		root := kubernetes.NewForConfigOrDie(p.config(t, filepath.Join(dataDir, "root.kubeconfig")))
		if _, err := root.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err != nil {
			t.Errorf("list by root = %v", err)
		}
	})
	t.Run("an admin may act as another", func(t *testing.T) {
		config := p.config(t, p.Kubeconfig)
		config.Impersonate = rest.ImpersonationConfig{UserName: "bob", Groups: []string{"qa"}}
		if user := whoAmI(t, config); user.Username != "bob" || !slices.Contains(user.Groups, "qa") {
			t.Errorf("user = %s in %q, want bob in qa", user.Username, user.Groups)
		}
	})
	t.Run("access reviews answer", func(t *testing.T) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "carol",
			Groups:             []string{"system:masters"},
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "secrets", Namespace: "default"},
		}}
		answer, err := p.admin(t).AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil || !answer.Status.Allowed {
			t.Errorf("review = %+v, %v, want allowed", answer.Status, err)
		}
	})
	t.Run("tokens of service accounts hold", func(t *testing.T) {
		expectToken(t, p, createToken(t, p))
	})
	t.Run("nobody else gets in", func(t *testing.T) {
		stranger := rest.AnonymousClientConfig(alice)
		if _, err := kubernetes.NewForConfigOrDie(stranger).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); err == nil {
			t.Error("a request without a certificate went through")
		}
	})
}

func TestNodeAuthorizerLimitsNode(t *testing.T) {
	dataDir := t.TempDir()
	p := launch(t, dataDir, "--node", "one")
	kubelet := kubernetes.NewForConfigOrDie(p.config(t, filepath.Join(dataDir, "one.kubeconfig")))
	for name, mine := range map[string]bool{"one": true, "two": false} {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := kubelet.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); apierrors.IsForbidden(err) == mine || mine && err != nil {
			t.Errorf("node %s is made by one: %v", name, err)
		}
	}
	if _, err := kubelet.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("a node reads all Secrets: %v", err)
	}
	scheduler := kubernetes.NewForConfigOrDie(p.config(t, filepath.Join(dataDir, "kube-scheduler.kubeconfig")))
	if _, err := scheduler.StorageV1().CSINodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the scheduler lacks a kind that it follows: %v", err)
	}
}

func TestAuthorizationConfigReplacesRBAC(t *testing.T) {
	webhook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review authorizationv1.SubjectAccessReview
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		review.Status.Allowed = review.Spec.User == "alice"
		_ = json.NewEncoder(w).Encode(review)
	}))
	defer webhook.Close()
	dataDir := t.TempDir()
	p := launch(t, dataDir, "--user", "alice", "--user", "mallory", "--authorization-config", authorizationConfig(t, webhook))
	for user, allowed := range map[string]bool{"alice": true, "mallory": false} {
		client := kubernetes.NewForConfigOrDie(p.config(t, filepath.Join(dataDir, user+".kubeconfig")))
		_, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if (err == nil) != allowed {
			t.Errorf("list by %s = %v, want allowed = %t", user, err, allowed)
		}
	}
}

func authorizationConfig(t *testing.T, webhook *httptest.Server) string {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "webhook.kubeconfig")
	if err := clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{"webhook": {Server: webhook.URL, InsecureSkipTLSVerify: true}},
		AuthInfos:      map[string]*api.AuthInfo{"api-server": {}},
		Contexts:       map[string]*api.Context{"webhook": {Cluster: "webhook", AuthInfo: "api-server"}},
		CurrentContext: "webhook",
	}, kubeconfig); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "authorization.yaml")
	if err := os.WriteFile(path, []byte(`
apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: test
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    authorizedTTL: 1s
    unauthorizedTTL: 1s
    connectionInfo:
      type: KubeConfigFile
      kubeConfigFile: `+kubeconfig+`
- type: RBAC
  name: rbac
`), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func whoAmI(t *testing.T, config *rest.Config) authenticationv1.UserInfo {
	t.Helper()
	reviews := kubernetes.NewForConfigOrDie(config).AuthenticationV1().SelfSubjectReviews()
	review, err := reviews.Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return review.Status.UserInfo
}

func createToken(t *testing.T, p *process) string {
	t.Helper()
	accounts := p.admin(t).CoreV1().ServiceAccounts("default")
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{GenerateName: "robot-"}}
	account, err := accounts.Create(t.Context(), account, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	request, err := accounts.CreateToken(t.Context(), account.Name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return request.Status.Token
}

func expectToken(t *testing.T, p *process, token string) {
	t.Helper()
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	answer, err := p.admin(t).AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil || !answer.Status.Authenticated {
		t.Errorf("token review = %+v, %v, want authenticated", answer.Status, err)
	}
}
