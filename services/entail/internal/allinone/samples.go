package allinone

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"

	"github.com/entail-dev/entail/deploy"
	"github.com/entail-dev/entail/services/internal/devserver"
)

// openSearchSample is the sample that requires OpenSearch.
const openSearchSample = "opensearch.yaml"

// maxSample bounds one file of samples, in bytes.
const maxSample = 4 << 20

// sampleSource names the manifests at a path.
type sampleSource struct {
	path string
	// openSearch includes the sample for OpenSearch.
	openSearch bool
}

// createMissingSamples creates the objects in the manifests that do not exist, and returns their names. Existing objects stay
// unchanged, because a user may have edited them.
func createMissingSamples(ctx context.Context, cfg *rest.Config, from sampleSource) ([]string, error) {
	objects, err := from.readSampleObjects()
	if err != nil {
		return nil, err
	}
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("create samples: %w", err)
	}
	mapper, err := newMapper(cfg)
	if err != nil {
		return nil, err
	}
	var created []string
	for _, object := range objects {
		name := object.GetKind() + "/" + object.GetName()
		isNew, err := createIfMissing(ctx, client, mapper, object)
		if err != nil {
			return created, fmt.Errorf("create sample %s: %w", name, err)
		}
		if isNew {
			created = append(created, name)
		}
	}
	return created, nil
}

func newMapper(cfg *rest.Config) (meta.RESTMapper, error) {
	client, err := discovery.NewDiscoveryClientForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("ask for the served kinds: %w", err)
	}
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		return nil, fmt.Errorf("ask for the served kinds: %w", err)
	}
	return restmapper.NewDiscoveryRESTMapper(groups), nil
}

func createIfMissing(ctx context.Context, client dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) (bool, error) {
	gvk := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return false, fmt.Errorf("find its resource: %w", err)
	}
	if err := annotateLastApplied(object); err != nil {
		return false, err
	}
	halfAMinute := wait.Backoff{Duration: 250 * time.Millisecond, Factor: 2, Steps: 8}
	err = retry.OnError(halfAMinute, isTemporaryServerError, func() error {
		_, err := client.Resource(mapping.Resource).Namespace(object.GetNamespace()).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
	if apierrors.IsAlreadyExists(err) {
		return false, nil
	}
	return err == nil, err
}

// isTemporaryServerError reports whether the API server, or a webhook that it called, failed for the moment.
func isTemporaryServerError(err error) bool {
	return apierrors.IsInternalError(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsServiceUnavailable(err)
}

// annotateLastApplied writes the annotation that `kubectl apply` compares with, so that a later apply of an edited sample
// also removes fields.
func annotateLastApplied(object *unstructured.Unstructured) error {
	manifest, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[corev1.LastAppliedConfigAnnotation] = string(manifest)
	object.SetAnnotations(annotations)
	return nil
}

// readSampleObjects reads a file, or every *.yaml file of a directory in the order of names, or the built-in samples.
func (s sampleSource) readSampleObjects() ([]*unstructured.Unstructured, error) {
	dir, files, err := s.findSampleFiles()
	if err != nil {
		return nil, fmt.Errorf("read samples: %w", err)
	}
	var objects []*unstructured.Unstructured
	for _, file := range files {
		found, err := readManifest(dir, file)
		if err != nil {
			return nil, fmt.Errorf("read sample %s: %w", file, err)
		}
		objects = append(objects, found...)
	}
	return objects, nil
}

// findSampleFiles returns the files at the path, and the file system that holds them.
func (s sampleSource) findSampleFiles() (dir fs.FS, files []string, err error) {
	if s.path == BuiltIn {
		files, err = fs.Glob(deploy.Files, "samples/*.yaml")
		return deploy.Files, s.dropOpenSearchSample(files), err
	}
	info, err := os.Stat(s.path)
	if err != nil {
		return nil, nil, err
	}
	if !info.IsDir() {
		return os.DirFS(filepath.Dir(s.path)), []string{filepath.Base(s.path)}, nil
	}
	dir = os.DirFS(s.path)
	files, err = fs.Glob(dir, "*.yaml")
	return dir, s.dropOpenSearchSample(files), err
}

// dropOpenSearchSample removes the sample for OpenSearch if OpenSearch does not run.
func (s sampleSource) dropOpenSearchSample(files []string) []string {
	return slices.DeleteFunc(files, func(file string) bool { return !s.openSearch && path.Base(file) == openSearchSample })
}

func readManifest(dir fs.FS, file string) ([]*unstructured.Unstructured, error) {
	info, err := fs.Stat(dir, file)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSample {
		return nil, fmt.Errorf("%d bytes are too many: at most %d", info.Size(), maxSample)
	}
	data, err := fs.ReadFile(dir, file)
	if err != nil {
		return nil, err
	}
	return devserver.DecodeManifest(data)
}
