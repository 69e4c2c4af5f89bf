package devserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"
)

const (
	crdManager     = "entail"
	crdReadyWithin = 30 * time.Second
	crdPoll        = 50 * time.Millisecond
)

// ApplyCRDs applies the CustomResourceDefinitions in the *.yaml files of dir, one
// per file, and returns when the API server serves them all.
func ApplyCRDs(ctx context.Context, cfg *rest.Config, dir fs.FS) error {
	ctx, cancel := context.WithTimeoutCause(ctx, crdReadyWithin, fmt.Errorf("not done after %s", crdReadyWithin))
	defer cancel()
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return fmt.Errorf("applying CRDs: %w", err)
	}
	crds := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	files, err := fs.Glob(dir, "*.yaml")
	if err != nil || len(files) == 0 {
		return fmt.Errorf("applying CRDs: no *.yaml files: %w", errors.Join(err, fs.ErrNotExist))
	}
	names := make([]string, 0, len(files))
	for _, file := range files {
		name, err := applyCRD(ctx, crds, dir, file)
		if err != nil {
			return fmt.Errorf("applying CRD %s: %w", file, err)
		}
		names = append(names, name)
	}
	for _, name := range names {
		if err := awaitCRD(ctx, crds, name); err != nil {
			return fmt.Errorf("waiting for CRD %s: %w", name, err)
		}
	}
	return nil
}

func applyCRD(ctx context.Context, crds dynamic.ResourceInterface, dir fs.FS, file string) (string, error) {
	data, err := fs.ReadFile(dir, file)
	if err != nil {
		return "", err
	}
	var crd unstructured.Unstructured
	if err := yaml.Unmarshal(data, &crd.Object); err != nil {
		return "", fmt.Errorf("decoding: %w", err)
	}
	if crd.GetKind() != "CustomResourceDefinition" {
		return "", fmt.Errorf("it holds a %q, not a CustomResourceDefinition", crd.GetKind())
	}
	patch, err := json.Marshal(crd.Object)
	if err != nil {
		return "", fmt.Errorf("encoding: %w", err)
	}
	force := true
	_, err = crds.Patch(ctx, crd.GetName(), types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: crdManager, Force: &force})
	return crd.GetName(), err
}

func awaitCRD(ctx context.Context, crds dynamic.ResourceInterface, name string) error {
	for {
		got, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err == nil && established(got) {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), err)
		case <-time.After(crdPoll):
		}
	}
}

func established(u *unstructured.Unstructured) bool {
	var crd apiextensionsv1.CustomResourceDefinition
	if runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &crd) != nil {
		return false
	}
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return true
		}
	}
	return false
}
