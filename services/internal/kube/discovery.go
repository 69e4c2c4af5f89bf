package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// DiscoverResources lists the resources of a group-version, such as "apps/v1". It returns [ErrNotServed] if the API
// server does not serve the group-version.
func (c *Client) DiscoverResources(ctx context.Context, groupVersion string) ([]metav1.APIResource, error) {
	prefix := "/apis"
	if !strings.Contains(groupVersion, "/") {
		prefix = "/api" // The core group has no name.
	}
	data, err := c.paths.Get().AbsPath(path.Join(prefix, groupVersion)).Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("discovering %s: %w", groupVersion, classifyError(err))
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(data, &list); err != nil {
		return nil, fmt.Errorf("discovering %s: %w", groupVersion, err)
	}
	return list.APIResources, nil
}

// newPathClient returns a client for arbitrary paths.
func newPathClient(cfg *rest.Config) (rest.Interface, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	return rest.UnversionedRESTClientFor(cfg)
}
