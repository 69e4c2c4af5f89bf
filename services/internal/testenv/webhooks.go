package testenv

import (
	"context"
	"errors"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/entail-dev/entail/services/internal/rbac"
)

// WebhookRegistration gives access to a service's webhook configuration and to the Secret with its key.
type WebhookRegistration struct {
	api          kubernetes.Interface
	name, secret string
}

// WebhookRegistration gives access to the named webhook configuration and its Secret.
func (k *KubeServer) WebhookRegistration(t testing.TB, name string) WebhookRegistration {
	t.Helper()
	return WebhookRegistration{api: k.TypedClient(t), name: name, secret: name + "-admission"}
}

// DeleteWebhooksAfter deletes a webhook configuration when the test ends.
func (k *KubeServer) DeleteWebhooksAfter(t testing.TB, name string) {
	t.Helper()
	api := k.TypedClient(t).AdmissionregistrationV1().ValidatingWebhookConfigurations()
	t.Cleanup(func() { _ = api.Delete(context.WithoutCancel(t.Context()), name, metav1.DeleteOptions{}) })
}

// CheckRegistered returns nil if the configuration has webhooks.
func (w WebhookRegistration) CheckRegistered(ctx context.Context) error {
	configuration, err := w.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Get(ctx, w.name, metav1.GetOptions{})
	if err == nil && len(configuration.Webhooks) == 0 {
		err = errors.New("the configuration has no webhook")
	}
	return err
}

// CheckRegisteredWithSecret returns nil if the configuration has webhooks and the Secret exists.
func (w WebhookRegistration) CheckRegisteredWithSecret(ctx context.Context) error {
	if err := w.CheckRegistered(ctx); err != nil {
		return err
	}
	_, err := w.api.CoreV1().Secrets(rbac.Namespace).Get(ctx, w.secret, metav1.GetOptions{})
	return err
}

// Delete deletes the configuration and the Secret.
func (w WebhookRegistration) Delete(ctx context.Context) error {
	return errors.Join(
		w.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(ctx, w.name, metav1.DeleteOptions{}),
		w.api.CoreV1().Secrets(rbac.Namespace).Delete(ctx, w.secret, metav1.DeleteOptions{}))
}

// RemoveWebhooks removes all webhooks from the configuration.
func (w WebhookRegistration) RemoveWebhooks(ctx context.Context) error {
	_, err := w.api.AdmissionregistrationV1().ValidatingWebhookConfigurations().
		Patch(ctx, w.name, types.MergePatchType, []byte(`{"webhooks":null}`), metav1.PatchOptions{})
	return err
}
