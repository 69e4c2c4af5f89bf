package workload

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// absent is the UID for objects that do not exist.
const absent = "absent"

// withPresentUIDs returns a copy of an object with the present UIDs in its references, because a seed cannot determine UIDs.
func (d *Driver) withPresentUIDs(ctx context.Context, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	o = o.DeepCopy()
	refs, _, _ := unstructured.NestedSlice(o.Object, "spec", "subjects")
	on, named, _ := unstructured.NestedMap(o.Object, "spec", "resourceSelector", "resourceRef")
	for _, item := range append(refs, any(on)) {
		ref, ok := item.(map[string]any)
		if !ok || ref["uid"] != "" {
			continue
		}
		var err error
		if ref["uid"], err = d.presentUID(ctx, ref); err != nil {
			return nil, err
		}
	}
	if err := d.setPresentOwners(ctx, o); err != nil {
		return nil, err
	}
	if len(refs) > 0 {
		if err := unstructured.SetNestedSlice(o.Object, refs, "spec", "subjects"); err != nil {
			return nil, err
		}
	}
	if named {
		return o, unstructured.SetNestedMap(o.Object, on, "spec", "resourceSelector", "resourceRef")
	}
	return o, nil
}

// setPresentOwners removes owners that do not exist, because Kubernetes deletes objects whose owners are all gone.
func (d *Driver) setPresentOwners(ctx context.Context, o *unstructured.Unstructured) error {
	var owners []metav1.OwnerReference
	for _, owner := range o.GetOwnerReferences() {
		uid, err := d.presentUID(ctx, kindReference(owner.Kind, owner.Name))
		if err != nil {
			return err
		}
		if owner.UID = types.UID(uid); uid != absent {
			owners = append(owners, owner)
		}
	}
	o.SetOwnerReferences(owners)
	return nil
}

func (d *Driver) presentUID(ctx context.Context, ref map[string]any) (string, error) {
	kind, _ := ref["kind"].(string)
	name, _ := ref["name"].(string)
	namespace, _ := ref["namespace"].(string)
	of := map[string]schema.GroupVersionResource{"User": IAMUserResource(), "Group": IAMGroupResource()}
	for _, t := range AllTargets() {
		of[t.Kind] = t.Resource
	}
	u, err := d.objects.Resource(of[kind]).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return absent, nil
	}
	if err != nil {
		return "", err
	}
	return string(u.GetUID()), nil
}
