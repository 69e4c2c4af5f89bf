package validating

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/entail-dev/entail/services/internal/admission"
	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/authz"
	"github.com/entail-dev/entail/services/internal/iam"
)

func TestValidatorRefusesWithoutIndex(t *testing.T) {
	request := &admissionv1.AdmissionRequest{
		Object:    runtime.RawExtension{Raw: []byte(`{"spec":{"includedPermissions":["a"],"ownerRef":{"name":"a"}},"metadata":{"ownerReferences":[{"name":"a"}]}}`)},
		OldObject: runtime.RawExtension{Raw: []byte(`{}`)},
	}
	for _, w := range new(Validator).Webhooks() {
		if w.FailurePolicy != nil {
			t.Errorf("webhook %s fails open", w.Name)
		}
		if w.Validate(t.Context(), request) == nil {
			t.Errorf("%s judges before anything was read", w.Name)
		}
	}
}

func TestMissingRightErrorReportsTooManyOwners(t *testing.T) {
	err := missingRightError(&admissionv1.AdmissionRequest{}, "it gets", authz.MissingRight{Owners: true}, "things")
	if err == nil || !strings.Contains(err.Error(), "more than 1000 would have to be checked") {
		t.Error(err)
	}
}

// folders returns a guard with files in folders, and with more kinds, given by group, kind and plural. On folder
// "mine", a subject with the role may delete their objects.
func folders(others ...[3]string) *Validator {
	x := authz.New(nil)
	var deletes []string
	register := func(of [3]string, parents ...iamv1alpha1.ParentResourceRef) {
		p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: of[0] + "." + of[2]}}
		p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.ParentResources = of[0], of[1], of[2], parents
		p.Spec.Permissions = []string{"delete"}
		x.SetProtectedResource(p.Name, p)
		deletes = append(deletes, iam.PermissionName(of[0], of[2], "", "delete"))
	}
	register([3]string{"a.example", "Folder", "folders"})
	for _, of := range append(others, [3]string{"a.example", "File", "files"}) {
		register(of, iamv1alpha1.ParentResourceRef{APIGroup: "a.example", Kind: "Folder"})
	}
	x.SetTarget("a.example/Folder", "n", "mine", &iam.BindingTarget{Namespace: "n", UID: "f"})
	x.SetRole("n", "remover", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: deletes[1:]}})
	b := &iamv1alpha1.PolicyBinding{}
	b.Spec.RoleRef.Name, b.Spec.Subjects = "remover", []iamv1alpha1.Subject{{Kind: "Group", Name: "oidc:removers"}}
	b.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: "a.example", Kind: "Folder", Namespace: "n", Name: "mine", UID: "f"}
	x.SetBinding("n", "b", b)
	g := new(Validator)
	g.SetInputs(ValidatorInputs{
		Index:    func(context.Context) (*authz.Index, error) { return x, nil },
		Identity: func(u authenticationv1.UserInfo) authz.Subject { return authz.Subject{Groups: u.Groups} },
	})
	return g
}

const owned = `{"namespace":"n","ownerReferences":[{"apiVersion":"a.example/v1","kind":"Folder","name":"mine","uid":"f"}]}`

// TestTypesOfKindCoverBothEventGroups verifies that an Event counts in both groups in which the API server serves it.
func TestTypesOfKindCoverBothEventGroups(t *testing.T) {
	for _, registered := range []string{"core.miloapis.com", "events.k8s.io"} {
		g := folders([3]string{registered, "Event", "events"})
		for _, served := range []string{"", "events.k8s.io"} {
			for _, w := range []admission.Webhook{g.otherKindsWebhook(), g.registeredParentsWebhook()} {
				err := w.Validate(t.Context(), &admissionv1.AdmissionRequest{
					Kind: metav1.GroupVersionKind{Group: served, Version: "v1", Kind: "Event"}, Namespace: "n", Name: "it",
					Object: runtime.RawExtension{Raw: []byte(`{"metadata":` + owned + `}`)}, OldObject: runtime.RawExtension{Raw: []byte(`{"metadata":{"namespace":"n"}}`)},
				})
				if err == nil || !strings.Contains(err.Error(), registered+"/events.delete") {
					t.Errorf("registered in %s, changed in %q, by %s: %v", registered, served, w.Name, err)
				}
			}
		}
	}
}

// TestDecodeObjectsIgnoresSimilarFields writes similar field names into objects of a kind without a schema.
func TestDecodeObjectsIgnoresSimilarFields(t *testing.T) {
	g := folders()
	for what, c := range map[string]struct{ was, is string }{
		"a new owner":             {`{"metadata":{"namespace":"n"}}`, `{"metadata":` + owned + `}`},
		"a field from before":     {`{"Metadata":` + owned + `,"metadata":{"namespace":"n"}}`, `{"Metadata":` + owned + `,"metadata":` + owned + `}`},
		"a field that comes, too": {`{"metadata":{"namespace":"n"}}`, `{"metadata":` + owned + `,"METADATA":{"ownerReferences":[]}}`},
	} {
		request := &admissionv1.AdmissionRequest{
			Kind: metav1.GroupVersionKind{Group: "a.example", Kind: "File"}, Namespace: "n", Name: "it",
			Object: runtime.RawExtension{Raw: []byte(c.is)}, OldObject: runtime.RawExtension{Raw: []byte(c.was)},
		}
		judged := 0
		for _, w := range g.Webhooks() {
			if w.Name != "parents.iam.miloapis.com" {
				continue
			}
			judged++
			if err := w.Validate(t.Context(), request); err == nil || !strings.Contains(err.Error(), "a.example/files.delete") {
				t.Errorf("%s: got %v, want a refusal", what, err)
			}
		}
		if judged != 1 {
			t.Errorf("%d judge", judged)
		}
	}
}
