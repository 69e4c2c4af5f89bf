package devserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/backoff"
)

const (
	manifestManager  = "entail"
	manifestsReadyIn = 30 * time.Second
	crdPoll          = 50 * time.Millisecond
)

// ManifestPatterns returns the patterns of the manifests below deploy/ that a cluster needs before services run.
func ManifestPatterns() []string { return []string{"crd/*.yaml", "admission/*.yaml"} }

// ApplyManifests applies the objects in the files that match [ManifestPatterns]. It returns when the API server serves
// all kinds that they define.
func ApplyManifests(ctx context.Context, cfg *rest.Config, deploy fs.FS) error {
	return applyMatchingManifests(ctx, cfg, deploy, ManifestPatterns())
}

func applyMatchingManifests(ctx context.Context, cfg *rest.Config, deploy fs.FS, patterns []string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, manifestsReadyIn, fmt.Errorf("not done after %s", manifestsReadyIn))
	defer cancel()
	client, err := newUnlimitedClient(cfg)
	if err != nil {
		return fmt.Errorf("applying manifests: %w", err)
	}
	var crds []string
	for _, pattern := range patterns {
		files, err := fs.Glob(deploy, pattern)
		if err != nil || len(files) == 0 {
			return fmt.Errorf("applying manifests: no %s: %w", pattern, errors.Join(err, fs.ErrNotExist))
		}
		for _, file := range files {
			defined, err := applyManifestFile(ctx, client, deploy, file)
			if err != nil {
				return fmt.Errorf("applying %s: %w", file, err)
			}
			crds = append(crds, defined...)
		}
	}
	for _, name := range crds {
		if err := awaitCRD(ctx, client.Resource(crdResource()), name); err != nil {
			return fmt.Errorf("waiting for CRD %s: %w", name, err)
		}
	}
	return nil
}

// newUnlimitedClient returns a client without a rate limit, because a user waits while dozens of manifests are applied.
func newUnlimitedClient(cfg *rest.Config) (dynamic.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	return dynamic.NewForConfig(cfg)
}

// applyManifestFile applies all documents of a file and returns the names of the CRDs among them.
func applyManifestFile(ctx context.Context, client dynamic.Interface, deploy fs.FS, file string) ([]string, error) {
	data, err := fs.ReadFile(deploy, file)
	if err != nil {
		return nil, err
	}
	objects, err := DecodeManifest(data)
	if err != nil {
		return nil, err
	}
	var crds []string
	for _, u := range objects {
		resource, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
		api := client.Resource(resource).Namespace(u.GetNamespace())
		foreign, err := isForeignCRD(ctx, api, u)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		if foreign {
			continue
		}
		if err := applyObject(ctx, api, u); err != nil {
			return nil, fmt.Errorf("%s %s: %w", u.GetKind(), u.GetName(), err)
		}
		if resource == crdResource() {
			crds = append(crds, u.GetName())
		}
	}
	return crds, nil
}

// partOf is the label that names the software that installed a CRD. Other software may have installed the same CRD.
const partOf = "app.kubernetes.io/part-of"

// isForeignCRD reports whether other software installed the CRD with the name of u, so that it must not be
// overwritten. This is the case if u has the label partOf and the installed CRD has no such label or another value.
func isForeignCRD(ctx context.Context, api dynamic.ResourceInterface, u *unstructured.Unstructured) (bool, error) {
	ours := u.GetLabels()[partOf]
	if ours == "" || u.GroupVersionKind().Group != apiextensionsv1.GroupName {
		return false, nil
	}
	has, err := api.Get(ctx, u.GetName(), metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil && has.GetLabels()[partOf] != ours, err
}

// DecodeManifest decodes the documents of a manifest and skips empty ones.
func DecodeManifest(manifest []byte) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	documents := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(manifest), len(manifest))
	for {
		u := &unstructured.Unstructured{}
		if err := documents.Decode(&u.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, fmt.Errorf("decoding: %w", err)
		}
		if len(u.Object) == 0 {
			continue
		}
		if u.GetKind() == "" || u.GetName() == "" {
			return nil, fmt.Errorf("document %d lacks a kind or a name", len(objects)+1)
		}
		objects = append(objects, u)
	}
}

// applyObject applies an object. Until the API server serves the kind of an admission policy's parameters, the policy
// refuses all objects. So applyObject retries.
func applyObject(ctx context.Context, api dynamic.ResourceInterface, u *unstructured.Unstructured) error {
	patch, err := json.Marshal(u.Object)
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	for {
		_, err := api.Patch(ctx, u.GetName(), types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: manifestManager, Force: new(true)})
		// The reason of the error is Forbidden or Invalid, depending on the Kubernetes release.
		if err == nil || !strings.Contains(err.Error(), "failed to configure") {
			return err
		}
		if !backoff.Sleep(ctx, crdPoll) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

func crdResource() schema.GroupVersionResource {
	return apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")
}

func awaitCRD(ctx context.Context, crds dynamic.ResourceInterface, name string) error {
	for {
		got, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err == nil && isEstablishedCRD(got) {
			return nil
		}
		if !backoff.Sleep(ctx, crdPoll) {
			return errors.Join(context.Cause(ctx), err)
		}
	}
}

func isEstablishedCRD(u *unstructured.Unstructured) bool {
	var crd apiextensionsv1.CustomResourceDefinition
	return runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd) == nil &&
		apihelpers.IsCRDConditionTrue(&crd, apiextensionsv1.Established)
}
