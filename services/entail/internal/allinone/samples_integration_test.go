//go:build integration

package allinone

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/services/internal/testenv"
)

func TestMain(m *testing.M) { testenv.Main(m) }

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// On a slow machine, the API server sometimes gets no answer from a webhook. Here no webhook answers for a while.
func TestCreateSamplesRetriesUnavailableWebhook(t *testing.T) {
	server := testenv.StartKube(t)
	api := kubernetes.NewForConfigOrDie(server.AdminConfig())
	webhooks := api.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	config := &admissionregistrationv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "nobody.example.com"},
		Webhooks: []admissionregistrationv1.ValidatingWebhook{{
			Name: "nobody.example.com", AdmissionReviewVersions: []string{"v1"}, SideEffects: new(admissionregistrationv1.SideEffectClassNone),
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new("https://127.0.0.1:1/")},
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"configmaps"}},
			}},
		}},
	}
	if _, err := webhooks.Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = webhooks.Delete(context.WithoutCancel(t.Context()), config.Name, metav1.DeleteOptions{}) })
	maps := api.CoreV1().ConfigMaps("default")
	testenv.Eventually(t, time.Minute, func() error {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "asked-"}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		if !isTemporaryServerError(err) {
			return fmt.Errorf("the webhook is not asked: %v", err)
		}
		return nil
	})

	sample := filepath.Join(t.TempDir(), "sample.yaml")
	if err := os.WriteFile(sample, []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: sample, namespace: default}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, refused := make(chan error, 1), make(chan struct{}, 1)
	cfg := server.AdminConfig()
	cfg.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if err == nil && answer.StatusCode == http.StatusInternalServerError {
				select {
				case refused <- struct{}{}:
				default:
				}
			}
			return answer, err
		})
	})
	go func() {
		_, err := createMissingSamples(t.Context(), cfg, sampleSource{path: sample})
		done <- err
	}()
	<-refused
	if err := webhooks.Delete(t.Context(), config.Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}
