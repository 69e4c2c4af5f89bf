package guard

import (
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestWhatCannotBeJudgedIsRefused(t *testing.T) {
	request := &admissionv1.AdmissionRequest{
		Object:    runtime.RawExtension{Raw: []byte(`{"spec":{"includedPermissions":["a"],"ownerRef":{"name":"a"}},"metadata":{"ownerReferences":[{"name":"a"}]}}`)},
		OldObject: runtime.RawExtension{Raw: []byte(`{}`)},
	}
	for _, w := range new(Guard).Webhooks() {
		if w.FailurePolicy != nil {
			t.Errorf("what %s cannot judge passes", w.Name)
		}
		if w.Judge(t.Context(), request) == nil {
			t.Errorf("%s judges before anything was read", w.Name)
		}
	}
}
