//go:build integration

package allinone

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/testenv"
)

// BenchmarkSecretToRefusal measures the time from a changed password in a Secret until OpenSearch refuses the old one.
// It does so with two users, then beside many more, each with its own Secret. For comparison, it also measures a
// password that one request writes.
//
// Both sides try the new password from the start. OpenSearch hashes each written and each tried password one after the
// other, and the one tried during the change is still wrong.
func BenchmarkSecretToRefusal(b *testing.B) {
	m := upWithOpenSearch(b)
	access, err := clientcmd.BuildConfigFromFlags("", m.at.Kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	access.QPS = -1
	secrets, others := kubernetes.NewForConfigOrDie(access), dynamic.NewForConfigOrDie(access)
	write := passwordWriter(b, secrets)
	passwords, last := 0, "cobalt-Ferret-91-orbit" // The password of the sample.
	for _, beside := range []int{0, 100} {
		b.Run(fmt.Sprint("beside=", beside), func(b *testing.B) {
			declareManyUsers(b, secrets, others, beside)
			loginOf(b, m.at, last)
			if err := write(last); err != nil {
				b.Fatal(err)
			}
			const changes = 25
			for b.Loop() {
				var took, bare []time.Duration
				for range changes {
					passwords++
					next := fmt.Sprintf("cobalt-Ferret-%d-orbit", 1000+passwords)
					began := time.Now()
					patch := fmt.Appendf(nil, `{"stringData":{"anna":%q}}`, next)
					if _, err := secrets.CoreV1().Secrets("default").Patch(b.Context(), "search-passwords", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
						b.Fatal(err)
					}
					awaitPasswordRefused(b, m.at, "anna", last, next)
					took = append(took, time.Since(began))
					began = time.Now()
					written := make(chan error, 1)
					go func() { written <- write(next) }()
					awaitPasswordRefused(b, m.at, "bare", last, next)
					bare = append(bare, time.Since(began))
					if err := <-written; err != nil {
						b.Fatal(err)
					}
					last = next
				}
				report(b, "", took)
				report(b, "bare-", bare)
			}
		})
	}
}

func report(b *testing.B, name string, took []time.Duration) {
	b.Helper()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "ms/"+name+"p50")
	b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "ms/"+name+"p99")
}

// passwordWriter returns a function that writes the password of an undeclared user, as an administrator and through one
// connection.
func passwordWriter(b *testing.B, secrets kubernetes.Interface) func(password string) error {
	b.Helper()
	s, err := secrets.CoreV1().Secrets("default").Get(b.Context(), "local-opensearch", metav1.GetOptions{})
	if err != nil {
		b.Fatal(err)
	}
	pair, err := tls.X509KeyPair(s.Data["tls.crt"], s.Data["tls.key"])
	if err != nil {
		b.Fatal(err)
	}
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}}}
	return func(password string) error {
		body := strings.NewReader(fmt.Sprintf(`{"password":%q}`, password))
		request, err := http.NewRequestWithContext(b.Context(), http.MethodPut, string(s.Data["url"])+"/_plugins/_security/api/internalusers/bare", body)
		if err != nil {
			return err
		}
		request.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		if _ = answer.Body.Close(); answer.StatusCode/100 != 2 {
			return fmt.Errorf("writing a password: %d", answer.StatusCode)
		}
		return nil
	}
}

// declareManyUsers declares n users with their own Secrets, and waits until OpenSearch has all of them.
func declareManyUsers(b *testing.B, secrets kubernetes.Interface, objects dynamic.Interface, n int) {
	b.Helper()
	kind := kinds.OpenSearchUsers()
	users := objects.Resource(kind.GroupVersionResource()).Namespace("default")
	for i := range n {
		name := fmt.Sprint("beside-", i)
		s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"key": "umbra-Lantern-37-quartz"}}
		if _, err := secrets.CoreV1().Secrets("default").Create(b.Context(), s, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
		u := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
			"opensearchCluster": map[string]any{"name": "search"}, "passwordFrom": map[string]any{"name": name, "key": "key"},
		}}}
		u.SetGroupVersionKind(kind.GroupVersionResource().GroupVersion().WithKind(kind.Kind))
		u.SetName(name)
		if _, err := users.Create(b.Context(), u, metav1.CreateOptions{}); err != nil {
			b.Fatal(err)
		}
	}
	testenv.Eventually(b, 10*time.Minute, func() error {
		all, err := users.List(b.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, u := range all.Items {
			if state, _, _ := unstructured.NestedString(u.Object, "status", "state"); state != "CREATED" {
				return fmt.Errorf("%s is %q", u.GetName(), state)
			}
		}
		return nil
	})
}

// awaitPasswordRefused waits until the next password is accepted, then requires that the last one is refused. It does
// not try the last one earlier: OpenSearch caches for a moment a login that was in progress during the change.
func awaitPasswordRefused(b *testing.B, at Endpoints, name, last, next string) {
	b.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	client := http.Client{Transport: transport}
	login := func(password string) int {
		request, err := http.NewRequestWithContext(b.Context(), http.MethodGet, at.OpenSearch+"/_plugins/_security/authinfo", http.NoBody)
		if err != nil {
			b.Fatal(err)
		}
		request.SetBasicAuth(name, password)
		answer, err := client.Do(request)
		if err != nil {
			b.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body) // Reading the body allows reuse of the connection.
		_ = answer.Body.Close()
		return answer.StatusCode
	}
	testenv.Eventually(b, time.Minute, func() error {
		if got := login(next); got != http.StatusOK {
			return fmt.Errorf("the next password of %s is answered by %d", name, got)
		}
		return nil
	})
	if got := login(last); got != http.StatusUnauthorized {
		b.Fatalf("the last password is answered by %d", got)
	}
}
