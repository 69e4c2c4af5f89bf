package kube

import (
	"context"
	"errors"
	"fmt"
	"path"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/fault"
	"github.com/entail-dev/entail/services/internal/kinds"
)

// maxConflicts bounds the conflicts with other writers in one call. After that many conflicts the caller must retry.
const maxConflicts = 5

// requestTimeout bounds one request.
const requestTimeout = 30 * time.Second

// Client reads and writes objects of one cluster for one service. It is safe for concurrent use.
type Client struct {
	api   dynamic.Interface
	paths rest.Interface
	// protobuf is for kinds that are built into Kubernetes.
	protobuf rest.Interface
	cluster  string
	manager  string
	events   flowcontrol.RateLimiter

	mu    sync.Mutex
	epoch string
}

// New returns a client for the cluster with the given name on NATS. fieldManager is the name of the service and owns
// the applied fields.
func New(cfg *rest.Config, cluster, fieldManager string) (*Client, error) {
	cfg = withoutRateLimit(cfg, fieldManager)
	api, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client of the API server: %w", err)
	}
	paths, err := newPathClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client of the API server: %w", err)
	}
	cfg.ContentType = runtime.ContentTypeProtobuf
	protobuf, err := newPathClient(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client of the API server: %w", err)
	}
	return &Client{
		api: api, paths: paths, protobuf: protobuf, cluster: cluster, manager: fieldManager,
		events: flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventBurst),
	}, nil
}

// withoutRateLimit disables the client's rate limit, because the API server's priority levels limit requests better
// than one client can.
func withoutRateLimit(cfg *rest.Config, manager string) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.UserAgent = manager
	if cfg.Timeout == 0 {
		cfg.Timeout = requestTimeout
	}
	return cfg
}

// ClusterUID returns the UID of the cluster, which is the UID of its kube-system namespace.
func (c *Client) ClusterUID(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != "" {
		return c.epoch, nil
	}
	namespaces := c.api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	system, err := namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the cluster's identity (namespace %s): %w", metav1.NamespaceSystem, classifyError(err))
	}
	c.epoch = string(system.GetUID())
	return c.epoch, nil
}

// Get reads an object. It returns [ErrNotFound] if the object does not exist.
func (c *Client) Get(ctx context.Context, kind kinds.Kind, namespace, name string) (event.Change, error) {
	now, err := c.sendAndDecode(ctx, kind, withObjectPath(c.paths.Get(), kind, namespace).Name(name).SetHeader("Accept",
		AcceptHeader(kind, "PartialObjectMetadata")))
	if err != nil {
		return event.Change{}, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	return now, nil
}

// ReadNewest reads obj again. If obj does not exist, ReadNewest returns it as deleted.
func (c *Client) ReadNewest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error) {
	now, err := c.Get(ctx, kind, obj.Key.Namespace, obj.Key.Name)
	if errors.Is(err, ErrNotFound) {
		now, err = obj, nil
		now.Deleted, now.ObservedAt = true, time.Now()
	}
	return now, err
}

// FetchLargeObject reads an object that was too large for NATS, as JSON. It returns nil if the object does not exist.
func (c *Client) FetchLargeObject(ctx context.Context, k event.Key) ([]byte, error) {
	kind, ok := kinds.ByResource(k.GroupResource)
	if !ok || k.Cluster != c.cluster {
		return nil, fault.Terminal(fmt.Errorf("fetching %s: not a kind of cluster %q that services read", k, c.cluster))
	}
	change, err := c.Get(ctx, kind, k.Namespace, k.Name)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return change.Object, err
}

// newPatchRequest returns a request that changes one object as this service.
func (c *Client) newPatchRequest(kind kinds.Kind, k event.Key, how types.PatchType, patch []byte) *rest.Request {
	return withObjectPath(c.paths.Patch(how), kind, k.Namespace).Name(k.Name).Param("fieldManager", c.manager).Body(patch)
}

// sendAndDecode sends a request and returns the object in the response.
func (c *Client) sendAndDecode(ctx context.Context, kind kinds.Kind, request *rest.Request) (event.Change, error) {
	raw, err := sendRequest(ctx, request)
	if err != nil {
		return event.Change{}, err
	}
	return c.decodeChange(ctx, kind, raw)
}

func (c *Client) decodeChange(ctx context.Context, kind kinds.Kind, raw []byte) (event.Change, error) {
	epoch, err := c.ClusterUID(ctx)
	if err != nil {
		return event.Change{}, err
	}
	o, err := ClusterOrigin{Cluster: c.cluster, Epoch: epoch}.DecodeObject(kind, raw)
	o.ObservedAt = time.Now()
	return o.Change, err
}

// sendRequest sends a request and returns the body of the response.
func sendRequest(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	// This error has the server's message. The error of Raw does not have it.
	if err := result.Error(); err != nil {
		return nil, classifyError(err)
	}
	return result.Raw()
}

// AcceptHeader returns the media type for requests of a kind. It requests only metadata if only metadata is published.
func AcceptHeader(kind kinds.Kind, as string) string {
	if kind.MetadataOnly {
		return "application/json;as=" + as + ";g=meta.k8s.io;v=v1"
	}
	return "application/json"
}

// withObjectPath sets the path of a request to the objects of a kind in a namespace.
func withObjectPath(request *rest.Request, kind kinds.Kind, namespace string) *rest.Request {
	return request.AbsPath(GroupVersionPath(kind)).NamespaceIfScoped(namespace, namespace != "").Resource(kind.Resource)
}

// GroupVersionPath returns the path of a group and version at the API server.
func GroupVersionPath(kind kinds.Kind) string {
	if kind.Group == "" {
		return path.Join("/api", kind.Version)
	}
	return path.Join("/apis", kind.Group, kind.Version)
}
