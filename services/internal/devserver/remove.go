package devserver

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/backoff"
	"github.com/entail-dev/entail/services/internal/rbac"
)

// RemoveManifests deletes everything that [ApplyUserRoles], [ApplyServiceAccounts] and [ApplyManifests] apply. It
// keeps the namespace, which may hold other objects, and CRDs that other software also applied, because deleting a CRD
// deletes all its objects.
//
// It deletes CRDs first, because services can remove finalizers only while they have their rights.
func RemoveManifests(ctx context.Context, cfg *rest.Config, deploy fs.FS) error {
	client, err := newUnlimitedClient(cfg)
	if err != nil {
		return fmt.Errorf("removing manifests: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, manifestsReadyIn, fmt.Errorf("not done after %s", manifestsReadyIn))
	defer cancel()
	for _, pattern := range []string{"crd/*.yaml", "base/roles.yaml", "base/*/rbac.yaml", "admission/*.yaml"} {
		objects, err := readManifests(deploy, pattern)
		if err != nil {
			return fmt.Errorf("removing manifests: %w", err)
		}
		for _, u := range objects {
			if err := removeObject(ctx, client, u); err != nil {
				return fmt.Errorf("removing %s %s: %w", u.GetKind(), u.GetName(), err)
			}
		}
	}
	// Last: a service that still has its rights would create the configuration again.
	for _, account := range rbac.ServiceAccounts() {
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(admissionregistrationv1.SchemeGroupVersion.WithKind("ValidatingWebhookConfiguration"))
		u.SetName("entail-" + account.Service)
		if err := removeObject(ctx, client, u); err != nil {
			return fmt.Errorf("removing %s %s: %w", u.GetKind(), u.GetName(), err)
		}
	}
	return nil
}

// InstalledCRDs returns the installed CRDs among the manifests. own lists those that only Entail applied, and shared
// those that other software also applied.
func InstalledCRDs(ctx context.Context, client dynamic.Interface, deploy fs.FS) (own, shared []*unstructured.Unstructured, err error) {
	wanted, err := readManifests(deploy, "crd/*.yaml")
	if err != nil {
		return nil, nil, fmt.Errorf("reading manifests: %w", err)
	}
	for _, u := range wanted {
		has, err := client.Resource(crdResource()).Get(ctx, u.GetName(), metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, nil, fmt.Errorf("looking for kind %s: %w", u.GetName(), err)
		case isSharedCRD(has):
			shared = append(shared, has)
		default:
			own = append(own, has)
		}
	}
	return own, shared, nil
}

// isSharedCRD reports whether another field manager wrote the spec of a CRD. Then its objects may belong to other
// software.
func isSharedCRD(definition *unstructured.Unstructured) bool {
	return slices.ContainsFunc(definition.GetManagedFields(), func(m metav1.ManagedFieldsEntry) bool {
		return m.Manager != manifestManager && m.Subresource == "" && m.FieldsV1 != nil && bytes.Contains(m.FieldsV1.GetRawBytes(), []byte(`"f:spec"`))
	})
}

// readManifests reads the objects in all files that match a pattern.
func readManifests(deploy fs.FS, pattern string) (objects []*unstructured.Unstructured, err error) {
	files, err := fs.Glob(deploy, pattern)
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("no %s: %w", pattern, errors.Join(err, fs.ErrNotExist))
	}
	for _, file := range files {
		data, err := fs.ReadFile(deploy, file)
		if err != nil {
			return nil, err
		}
		some, err := DecodeManifest(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		objects = append(objects, some...)
	}
	return objects, nil
}

// removeObject deletes an object and waits until it no longer exists. It keeps a shared CRD.
func removeObject(ctx context.Context, client dynamic.Interface, u *unstructured.Unstructured) error {
	resource, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	api := client.Resource(resource).Namespace(u.GetNamespace())
	for {
		has, err := api.Get(ctx, u.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) || err == nil && resource == crdResource() && isSharedCRD(has) {
			return nil
		}
		if err == nil {
			err = api.Delete(ctx, u.GetName(), metav1.DeleteOptions{})
		}
		if !backoff.Sleep(ctx, crdPoll) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}
