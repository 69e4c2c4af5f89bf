package iam

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
)

func TestAProjectBelongsToTheOrganizationThatItNamesAndToNoOther(t *testing.T) {
	const organization, folder = "resourcemanager.miloapis.com/Organization", "a.example/Folder"
	of := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "resourcemanager.miloapis.com/v1alpha1", Kind: "Organization", Name: name, UID: "1"}
	}
	in := metav1.OwnerReference{APIVersion: "a.example/v1", Kind: "Folder", Name: "f", UID: "2"}
	for name, test := range map[string]struct {
		owners []metav1.OwnerReference
		want   []Owner
	}{
		"no reference":      {nil, []Owner{{organization, "acme", ""}}},
		"its own":           {[]metav1.OwnerReference{of("acme")}, []Owner{{organization, "acme", "1"}}},
		"another's":         {[]metav1.OwnerReference{of("evil")}, []Owner{{organization, "acme", ""}}},
		"its and another's": {[]metav1.OwnerReference{of("acme"), in, of("evil")}, []Owner{{folder, "f", "2"}, {organization, "acme", "1"}}},
		"another's and its": {[]metav1.OwnerReference{of("evil"), of("acme")}, []Owner{{organization, "acme", "1"}}},
	} {
		p := &resourcemanagerv1alpha1.Project{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.owners}}
		p.Spec.OwnerRef.Name = "acme"
		if got, _ := TargetOfProject(p); !slices.Equal(got.Owners, test.want) {
			t.Errorf("%s: it belongs to %v, want %v", name, got.Owners, test.want)
		}
	}
}
