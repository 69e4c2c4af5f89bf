package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

const (
	manager = "people"
	// patience bounds the attempts of an operation. It exceeds the longest outage of the API server under any blow.
	patience = 90 * time.Second
	callFor  = 5 * time.Second
)

// Driver executes operations.
type Driver struct {
	// Wrote is called with each object that the API server returned for a write; nil if nobody needs it.
	Wrote func(schema.GroupVersionResource, *unstructured.Unstructured)

	objects dynamic.Interface
}

// NewDriver returns a driver with the rights of cfg.
func NewDriver(cfg *rest.Config) (*Driver, error) {
	objects, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("connecting the driver: %w", err)
	}
	return &Driver{objects: objects}, nil
}

// DynamicClient returns the client of the driver.
func (d *Driver) DynamicClient() dynamic.Interface { return d.objects }

// Execute executes an operation. It retries while the API server does not answer.
func (d *Driver) Execute(ctx context.Context, o Operation) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	steps := map[OperationVerb][]func(context.Context, Operation) error{
		Apply: {d.applyObject}, Delete: {d.deleteObject}, Replace: {d.deleteObject, d.applyObject}, Strip: {d.stripFinalizers, d.deleteObject, d.applyObject},
	}
	for _, step := range steps[o.Verb] {
		if err := retryCall(ctx, func(ctx context.Context) error { return step(ctx, o) }); err != nil {
			return fmt.Errorf("%s: %w", o, err)
		}
	}
	return nil
}

func (d *Driver) resourceClient(o Operation) dynamic.ResourceInterface {
	if namespace := o.Object.GetNamespace(); namespace != "" {
		return d.objects.Resource(o.Resource).Namespace(namespace)
	}
	return d.objects.Resource(o.Resource)
}

func (d *Driver) applyObject(ctx context.Context, o Operation) error {
	object, err := d.withPresentUIDs(ctx, o.Object)
	if err != nil {
		return err
	}
	written, err := d.resourceClient(o).Apply(ctx, o.Object.GetName(), object, metav1.ApplyOptions{FieldManager: manager, Force: true})
	if err == nil && d.Wrote != nil {
		d.Wrote(o.Resource, written)
	}
	return err
}

func (d *Driver) deleteObject(ctx context.Context, o Operation) error {
	err := d.resourceClient(o).Delete(ctx, o.Object.GetName(), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// stripFinalizers removes the finalizers of an object, if it exists.
func (d *Driver) stripFinalizers(ctx context.Context, o Operation) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"finalizers": nil}})
	if err != nil {
		return err
	}
	_, err = d.resourceClient(o).Patch(ctx, o.Object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{FieldManager: manager})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// List lists the objects of a kind.
func (d *Driver) List(ctx context.Context, k ObjectKind) ([]unstructured.Unstructured, error) {
	ctx, cancel := context.WithTimeout(ctx, callFor)
	defer cancel()
	list, err := d.objects.Resource(k.Resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// retryCall repeats a call until it succeeds, is refused, or ctx ends.
func retryCall(ctx context.Context, call func(context.Context) error) error {
	for {
		attempt, cancel := context.WithTimeout(ctx, callFor)
		err := call(attempt)
		cancel()
		if err == nil || isRefused(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// isRefused reports whether the API server rejected the request itself. A starting API server also rejects requests while
// it loads its own policies; these do not count.
func isRefused(err error) bool {
	return (apierrors.IsInvalid(err) || apierrors.IsBadRequest(err)) && !strings.Contains(err.Error(), "failed to configure policy")
}
