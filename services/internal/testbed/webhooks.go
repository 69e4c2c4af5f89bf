package testbed

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/services/internal/rbac"
)

// Webhooks are what a service keeps of its admission webhooks in the API server: their configuration, and a Secret with the key.
type Webhooks struct {
	api          kubernetes.Interface
	name, secret string
}

// Webhooks are those of this configuration.
func (k *KubeServer) Webhooks(t testing.TB, name string) Webhooks {
	t.Helper()
	return Webhooks{api: k.Typed(t), name: name, secret: name + "-admission"}
}

// DeleteWebhooksAfter deletes a configuration of webhooks when the test ends.
func (k *KubeServer) DeleteWebhooksAfter(t testing.TB, name string) {
	t.Helper()
	api := k.Typed(t).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
}

// Configured returns nil if the configuration has webhooks.
func (w Webhooks) Configured(ctx context.Context) error {
	configuration, err := w.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, w.name, metav1.GetOptions{})
	if err == nil && len(configuration.Webhooks) == 0 {
		err = errors.New("the configuration has no webhook")
	}
	return err
}

// Kept is nil where the Secret is there, too.
func (w Webhooks) Kept(ctx context.Context) error {
	if err := w.Configured(ctx); err != nil {
		return err
	}
	_, err := w.api.CoreV1().Secrets(rbac.Namespace).Get(ctx, w.secret, metav1.GetOptions{})
	return err
}

// Delete takes both away.
func (w Webhooks) Delete(ctx context.Context) error {
	return errors.Join(
		w.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, w.name, metav1.DeleteOptions{}),
		w.api.CoreV1().Secrets(rbac.Namespace).Delete(ctx, w.secret, metav1.DeleteOptions{}))
}

// Empty leaves a configuration that asks nobody.
func (w Webhooks) Empty(ctx context.Context) error {
	_, err := w.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Patch(ctx, w.name, types.MergePatchType, []byte(`{"webhooks":null}`), metav1.PatchOptions{})
	return err
}
