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

// attempts bounds the fight with other writers; beyond, the caller's own retry takes over.
const attempts = 5

// requestTimeout bounds one request; watches do not come through here.
const requestTimeout = 30 * time.Second

// Client reads and writes objects of one cluster on behalf of one service. It is
// safe for concurrent use.
type Client struct {
	api   dynamic.Interface
	paths rest.Interface
	// protobuf is for kinds that Kubernetes itself has.
	protobuf rest.Interface
	cluster  string
	manager  string
	events   flowcontrol.RateLimiter

	mu    sync.Mutex
	epoch string
}

// New makes a client for the cluster that the bus knows by the given name.
// fieldManager, the service's name, owns what the client applies.
func New(cfg *rest.Config, cluster, fieldManager string) (*Client, error) {
	cfg = tuned(cfg, fieldManager)
	api, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client of the API server: %w", err)
	}
	paths, err := plain(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client of the API server: %w", err)
	}
	cfg.ContentType = runtime.ContentTypeProtobuf
	protobuf, err := plain(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client of the API server: %w", err)
	}
	return &Client{
		api: api, paths: paths, protobuf: protobuf, cluster: cluster, manager: fieldManager,
		events: flowcontrol.NewTokenBucketRateLimiter(eventsPerSecond, eventBurst),
	}, nil
}

// tuned leaves fairness to the API server: its own priority levels see more than a client does.
func tuned(cfg *rest.Config, manager string) *rest.Config {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1
	cfg.UserAgent = manager
	if cfg.Timeout == 0 {
		cfg.Timeout = requestTimeout
	}
	return cfg
}

// Epoch is the UID of the cluster, which is that of its kube-system namespace.
func (c *Client) Epoch(ctx context.Context) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.epoch != "" {
		return c.epoch, nil
	}
	namespaces := c.api.Resource(schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	system, err := namespaces.Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	if err != nil {
		return "", fmt.Errorf("reading the cluster's identity (namespace %s): %w", metav1.NamespaceSystem, classify(err))
	}
	c.epoch = string(system.GetUID())
	return c.epoch, nil
}

// Get reads an object. It returns [ErrNotFound] when there is none.
func (c *Client) Get(ctx context.Context, kind kinds.Kind, namespace, name string) (event.Change, error) {
	now, err := c.answer(ctx, kind, about(c.paths.Get(), kind, namespace).Name(name).SetHeader("Accept", Accept(kind, "PartialObjectMetadata")))
	if err != nil {
		return event.Change{}, fmt.Errorf("reading %s %s: %w", kind.Kind, name, err)
	}
	return now, nil
}

// Newest reads obj anew. When it is gone, the state is the last one, deleted.
func (c *Client) Newest(ctx context.Context, kind kinds.Kind, obj event.Change) (event.Change, error) {
	now, err := c.Get(ctx, kind, obj.Key.Namespace, obj.Key.Name)
	if errors.Is(err, ErrNotFound) {
		now, err = obj, nil
		now.Deleted, now.ObservedAt = true, time.Now()
	}
	return now, err
}

// Fetch reads the object that a key names, as JSON, for what was too large for the bus;
// nil when there is none.
func (c *Client) Fetch(ctx context.Context, k event.Key) ([]byte, error) {
	kind, ok := kinds.Of(k.GroupResource)
	if !ok || k.Cluster != c.cluster {
		return nil, fault.Terminal(fmt.Errorf("fetching %s: not a kind of cluster %q that services read", k, c.cluster))
	}
	change, err := c.Get(ctx, kind, k.Namespace, k.Name)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return change.Object, err
}

// patch is a request to change one object in this service's name.
func (c *Client) patch(kind kinds.Kind, k event.Key, how types.PatchType, patch []byte) *rest.Request {
	return about(c.paths.Patch(how), kind, k.Namespace).Name(k.Name).Param("fieldManager", c.manager).Body(patch)
}

// answer makes a request, and returns the object that it is answered with.
func (c *Client) answer(ctx context.Context, kind kinds.Kind, request *rest.Request) (event.Change, error) {
	raw, err := send(ctx, request)
	if err != nil {
		return event.Change{}, err
	}
	return c.change(ctx, kind, raw)
}

func (c *Client) change(ctx context.Context, kind kinds.Kind, raw []byte) (event.Change, error) {
	epoch, err := c.Epoch(ctx)
	if err != nil {
		return event.Change{}, err
	}
	o, err := Origin{Cluster: c.cluster, Epoch: epoch}.Read(kind, raw)
	o.ObservedAt = time.Now()
	return o.Change, err
}

// send makes a request, and returns the answer as it was sent.
func send(ctx context.Context, request *rest.Request) ([]byte, error) {
	result := request.Do(ctx)
	if err := result.Error(); err != nil { // It has the server's words; that of Raw has not.
		return nil, classify(err)
	}
	return result.Raw()
}

// Accept asks for no more than may travel, as metadata of an object or of a list.
func Accept(kind kinds.Kind, as string) string {
	if kind.MetadataOnly {
		return "application/json;as=" + as + ";g=meta.k8s.io;v=v1"
	}
	return "application/json"
}

// about makes a request one about the objects of a kind in a namespace.
func about(request *rest.Request, kind kinds.Kind, namespace string) *rest.Request {
	return request.AbsPath(Prefix(kind)).NamespaceIfScoped(namespace, namespace != "").Resource(kind.Resource)
}

// Prefix is the path under which the API server serves a kind, and others of its group and version.
func Prefix(kind kinds.Kind) string {
	if kind.Group == "" {
		return path.Join("/api", kind.Version)
	}
	return path.Join("/apis", kind.Group, kind.Version)
}
