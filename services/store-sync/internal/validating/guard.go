// Package validating refuses a text that no model can hold. It refuses the text when it is written, because otherwise
// the text would change nothing: the last valid text stays live. It also refuses a new Store whose name OpenFGA does
// not allow. The author receives the error at once, and not only in a condition.
//
// The webhooks are a convenience: while they do not answer, every text passes. They do not check PolicyDocuments. The
// API server validates the form of those, and all other errors depend on other documents.
package validating

import (
	"context"
	"encoding/json"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/entail-dev/entail/services/internal/admission"
	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	"github.com/entail-dev/entail/services/internal/fga"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/store-sync/model"
)

// Name is the name of the ValidatingWebhookConfiguration.
const Name = "entail-store-sync"

// Webhooks returns the webhooks for Stores and AuthorizationModels.
func Webhooks(limits model.Limits) []admission.Webhook {
	limits = limits.OrDefault()
	return []admission.Webhook{
		withStoreName(modelTextWebhook(kinds.Stores(), "coreModule", limits, func(s *corev1alpha1.Store) (string, bool) { return s.Spec.CoreModule, true })),
		modelTextWebhook(kinds.AuthorizationModels(), "model", limits, func(m *corev1alpha1.AuthorizationModel) (string, bool) {
			// A PolicyDocument with only unions or actions has an AuthorizationModel without a text.
			return m.Spec.Model, m.Spec.Model != "" || m.Annotations[corev1alpha1.DocumentAnnotation] == ""
		}),
	}
}

// withStoreName returns the webhook for Stores, which then also checks the name of each new Store.
func withStoreName(w admission.Webhook) admission.Webhook {
	judgeText := w.Validate
	w.Validate = func(ctx context.Context, request *admissionv1.AdmissionRequest) error {
		if request.Operation == admissionv1.Create {
			var s corev1alpha1.Store
			if err := json.Unmarshal(request.Object.Raw, &s); err != nil {
				return fmt.Errorf("decoding a Store: %w", err)
			}
			if err := fga.ValidateStoreName(s.Name); err != nil {
				return admission.InvalidError(request, field.ErrorList{invalidField(field.NewPath("metadata", "name"), err.Error())})
			}
		}
		return judgeText(ctx, request)
	}
	return w
}

// invalidField returns the error about a field without its value, because a text can be long.
func invalidField(path *field.Path, why string) *field.Error {
	return field.Invalid(path, field.OmitValueType{}, why)
}

// modelTextWebhook judges the text in the named field of the spec of a kind. It skips an unchanged text, and a text that may be missing.
func modelTextWebhook[T any](kind kinds.Kind, name string, limits model.Limits, text func(*T) (string, bool)) admission.Webhook {
	ignore, scope := admissionregistrationv1.Ignore, admissionregistrationv1.ClusterScope
	return admission.Webhook{
		ValidatingWebhook: admissionregistrationv1.ValidatingWebhook{
			Name: kind.Resource + "." + kind.Group, FailurePolicy: &ignore,
			Rules: []admissionregistrationv1.RuleWithOperations{{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule: admissionregistrationv1.Rule{
					APIGroups: []string{kind.Group}, APIVersions: []string{"*"}, Resources: []string{kind.Resource}, Scope: &scope,
				},
			}},
			MatchConditions: []admissionregistrationv1.MatchCondition{{
				Name: "the-text-is-new", Expression: fmt.Sprintf("oldObject == null || object.spec.%[1]s != oldObject.spec.%[1]s", name),
			}},
		},
		Validate: func(_ context.Context, request *admissionv1.AdmissionRequest) error {
			object := new(T)
			if err := json.Unmarshal(request.Object.Raw, object); err != nil {
				return fmt.Errorf("decoding a %s: %w", kind.Kind, err)
			}
			is, judged := text(object)
			if !judged {
				return nil
			}
			if why := model.InvalidTextReason(is, limits); why != "" {
				return admission.InvalidError(request, field.ErrorList{invalidField(field.NewPath("spec", name), why)})
			}
			return nil
		},
	}
}
