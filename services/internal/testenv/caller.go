package testenv

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"connectrpc.com/connect"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// bearerTransport sends a token with each request.
type bearerTransport string

// RoundTrip implements [http.RoundTripper].
func (b bearerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// CreateCaller creates a ServiceAccount without rights and returns a client with its token. The account is deleted
// when the test ends.
func (k *KubeServer) CreateCaller(t testing.TB, name string) (uid string, client *http.Client) {
	t.Helper()
	api := k.TypedClient(t)
	accounts := api.CoreV1().ServiceAccounts(metav1.NamespaceDefault)
	account, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := accounts.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	token, err := accounts.CreateToken(t.Context(), name, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return string(account.UID), &http.Client{Transport: bearerTransport(token.Status.Token)}
}

// CreateAdministrator creates a ServiceAccount with all rights and returns a client with its token. The rights do not
// take effect at once. The account is deleted when the test ends.
func (k *KubeServer) CreateAdministrator(t testing.TB, name string) *http.Client {
	t.Helper()
	_, client := k.CreateCaller(t, name)
	k.bindClusterRole(t, "", "cluster-admin", rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name})
	return client
}

// AwaitErrorCode calls ask until its error has the code want.
func AwaitErrorCode(t testing.TB, deadline time.Duration, want connect.Code, ask func(context.Context) error) {
	t.Helper()
	Eventually(t, deadline, func() error {
		if err := ask(t.Context()); connect.CodeOf(err) != want {
			return fmt.Errorf("the answer is %w, want %s", err, want)
		}
		return nil
	})
}
