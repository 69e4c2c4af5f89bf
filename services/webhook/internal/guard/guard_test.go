package guard

import (
	"context"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	iamv1alpha1 "github.com/entail-dev/entail/services/internal/api/iam/v1alpha1"
	"github.com/entail-dev/entail/services/internal/decide"
	"github.com/entail-dev/entail/services/internal/iam"
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

func TestWhoGivesMoreOwnersThanAreLookedAtIsToldSo(t *testing.T) {
	err := refuse(&admissionv1.AdmissionRequest{}, "it gets", decide.Missing{Owners: true}, "things")
	if err == nil || !strings.Contains(err.Error(), "over 1000 owners are to be looked at") {
		t.Error(err)
	}
}

// folders is a guard of files that may belong to folders. Whoever has the role has on folder "mine" what deletes files.
func folders() *Guard {
	x := decide.New(nil)
	register := func(kind, plural string, parents ...iamv1alpha1.ParentResourceRef) {
		p := &iamv1alpha1.ProtectedResource{ObjectMeta: metav1.ObjectMeta{Name: plural}}
		p.Spec.ServiceRef.Name, p.Spec.Kind, p.Spec.Plural, p.Spec.ParentResources = "a.example", kind, plural, parents
		p.Spec.Permissions = []string{"delete"}
		x.SetProtectedResource(p.Name, p)
	}
	register("Folder", "folders")
	register("File", "files", iamv1alpha1.ParentResourceRef{APIGroup: "a.example", Kind: "Folder"})
	x.SetTarget("a.example/Folder", "n", "mine", &iam.Target{Namespace: "n", UID: "f"})
	x.SetRole("n", "remover", &iamv1alpha1.Role{Spec: iamv1alpha1.RoleSpec{IncludedPermissions: []string{"a.example/files.delete"}}})
	b := &iamv1alpha1.PolicyBinding{}
	b.Spec.RoleRef.Name, b.Spec.Subjects = "remover", []iamv1alpha1.Subject{{Kind: "Group", Name: "oidc:removers"}}
	b.Spec.ResourceSelector.ResourceRef = &iamv1alpha1.ResourceReference{APIGroup: "a.example", Kind: "Folder", Namespace: "n", Name: "mine", UID: "f"}
	x.SetBinding("n", "b", b)
	g := new(Guard)
	g.Follow(Source{
		Index:    func(context.Context) (*decide.Index, error) { return x, nil },
		Identity: func(u authenticationv1.UserInfo) decide.Subject { return decide.Subject{Groups: u.Groups} },
	})
	return g
}

// Kinds without a schema have whatever fields somebody writes into their objects.
func TestNoFieldIsTakenForTheOwnersOfAnObject(t *testing.T) {
	const owned = `{"namespace":"n","ownerReferences":[{"apiVersion":"a.example/v1","kind":"Folder","name":"mine","uid":"f"}]}`
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
			if err := w.Judge(t.Context(), request); err == nil || !strings.Contains(err.Error(), "a.example/files.delete") {
				t.Errorf("%s is let in: %v", what, err)
			}
		}
		if judged != 1 {
			t.Errorf("%d judge", judged)
		}
	}
}
