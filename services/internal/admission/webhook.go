package admission

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// desiredWebhooks returns the webhooks to register. They include all values that the API server would default, so that
// they can be compared with the registered ones.
func (s *Server) desiredWebhooks(
	ctx context.Context, c *servingCertificate, registered []admissionregistrationv1.ValidatingWebhook,
) ([]admissionregistrationv1.ValidatingWebhook, error) {
	now, before := time.Now(), []byte(nil)
	if len(registered) > 0 {
		before = registered[0].ClientConfig.CABundle
	}
	bundle := c.authorityBundle(before, now)
	all := make([]admissionregistrationv1.ValidatingWebhook, len(s.options.Webhooks))
	for i, webhook := range s.options.Webhooks {
		w, is := webhook.DeepCopy(), admissionregistrationv1.ValidatingWebhook{}
		if at := slices.IndexFunc(registered, func(r admissionregistrationv1.ValidatingWebhook) bool { return r.Name == w.Name }); at >= 0 {
			is = registered[at]
		}
		if webhook.Scope != nil {
			var err error
			if w.NamespaceSelector, err = webhook.Scope.DesiredSelector(ctx, is.NamespaceSelector); err != nil {
				return nil, err
			}
		}
		if webhook.RulesFunc != nil {
			w.Rules, w.MatchConditions = webhook.RulesFunc(ctx, is.Rules, is.MatchConditions)
		}
		setWebhookDefaults(w)
		w.ClientConfig = s.cfg.webhookClientConfig(c.webhookPath(w.Name, now), bundle)
		all[i] = *w
	}
	return all, nil
}

// setWebhookDefaults sets the values that all webhooks share. If the webhook sets no failure policy, requests are
// refused while the webhook cannot be called.
func setWebhookDefaults(w *admissionregistrationv1.ValidatingWebhook) {
	fail, equivalent, none := admissionregistrationv1.Fail, admissionregistrationv1.Equivalent, admissionregistrationv1.SideEffectClassNone
	seconds, scope := int32(webhookTimeout.Seconds()), admissionregistrationv1.NamespacedScope
	w.MatchPolicy, w.TimeoutSeconds = &equivalent, &seconds
	if w.FailurePolicy == nil {
		w.FailurePolicy = &fail
	}
	if w.SideEffects == nil {
		w.SideEffects = &none
	}
	w.AdmissionReviewVersions = []string{admissionv1.SchemeGroupVersion.Version}
	if w.NamespaceSelector == nil {
		w.NamespaceSelector = &metav1.LabelSelector{}
	}
	w.ObjectSelector = &metav1.LabelSelector{}
	for i := range w.Rules {
		w.Rules[i].Scope = cmp.Or(w.Rules[i].Scope, &scope)
	}
}

func (c Config) webhookClientConfig(path string, bundle []byte) admissionregistrationv1.WebhookClientConfig {
	if c.URL != "" {
		url := strings.TrimSuffix(c.URL, "/") + path
		return admissionregistrationv1.WebhookClientConfig{URL: &url, CABundle: bundle}
	}
	namespace, name, _ := strings.Cut(c.Service, "/")
	port := int32(443)
	return admissionregistrationv1.WebhookClientConfig{
		Service: &admissionregistrationv1.ServiceReference{Namespace: namespace, Name: name, Path: &path, Port: &port}, CABundle: bundle,
	}
}
