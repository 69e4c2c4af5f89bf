package iam

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	resourcemanagerv1alpha1 "github.com/entail-dev/entail/services/internal/api/resourcemanager/v1alpha1"
)

func TestTargetOfProjectHasRecordedOrganization(t *testing.T) {
	const organization, folder = "resourcemanager.miloapis.com/Organization", "a.example/Folder"
	of := func(name string) metav1.OwnerReference {
		return metav1.OwnerReference{APIVersion: "resourcemanager.miloapis.com/v1alpha1", Kind: "Organization", Name: name, UID: "1"}
	}
	in := metav1.OwnerReference{APIVersion: "a.example/v1", Kind: "Folder", Name: "f", UID: "2"}
	acme := &resourcemanagerv1alpha1.ProjectOrganization{Name: "acme", UID: "1"}
	for name, test := range map[string]struct {
		recorded *resourcemanagerv1alpha1.ProjectOrganization
		owners   []metav1.OwnerReference
		want     []Owner
	}{
		"no reference":                 {acme, nil, []Owner{{organization, "acme", "1"}}},
		"its own":                      {acme, []metav1.OwnerReference{of("acme")}, []Owner{{organization, "acme", "1"}}},
		"another's":                    {acme, []metav1.OwnerReference{of("evil")}, []Owner{{organization, "acme", "1"}}},
		"its and another's":            {acme, []metav1.OwnerReference{of("acme"), in, of("evil")}, []Owner{{folder, "f", "2"}, {organization, "acme", "1"}}},
		"another's and its":            {acme, []metav1.OwnerReference{of("evil"), of("acme")}, []Owner{{organization, "acme", "1"}}},
		"not recorded":                 {nil, []metav1.OwnerReference{of("acme")}, []Owner{{organization, "acme", ""}}},
		"recorded of another name":     {&resourcemanagerv1alpha1.ProjectOrganization{Name: "evil", UID: "1"}, nil, []Owner{{organization, "acme", ""}}},
		"a reference to one that went": {&resourcemanagerv1alpha1.ProjectOrganization{Name: "acme", UID: "2"}, []metav1.OwnerReference{of("acme")}, []Owner{{organization, "acme", ""}}},
	} {
		p := &resourcemanagerv1alpha1.Project{ObjectMeta: metav1.ObjectMeta{OwnerReferences: test.owners}}
		p.Spec.OwnerRef.Name, p.Status.Organization = "acme", test.recorded
		if got, _ := TargetOfProject(p); !slices.Equal(got.Owners, test.want) {
			t.Errorf("%s: it belongs to %v, want %v", name, got.Owners, test.want)
		}
	}
}

func TestOwnerWithoutUIDIsIgnored(t *testing.T) {
	k := &RegisteredKind{Type: "a/Leaf", Parents: []*RegisteredKind{{Type: "a/Tree"}}}
	for uid, want := range map[string]int{"1": 1, "2": 0, "": 0} {
		for _, is := range []string{"1", ""} {
			o := &DeclaredObjects{Target: func(string) (BindingTarget, bool) { return BindingTarget{UID: is}, true }}
			if got := o.storedParentNames(k, BindingTarget{Owners: []Owner{{"a/Tree", "t", uid}}}); is != "" && len(got) != want || is == "" && len(got) > 0 {
				t.Errorf("of the UID %q where %q is, the parents are %v", uid, is, got)
			}
		}
	}
}
