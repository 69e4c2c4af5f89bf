// Package source reads the API server: lists by page, watches and single objects. It returns each object as a change
// with a fingerprint of its meaning. Objects stay in the JSON of the server, so the package can read any kind. It
// decodes one object at a time.
package source

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/services/internal/event"
	"github.com/entail-dev/entail/services/internal/kinds"
	"github.com/entail-dev/entail/services/internal/kube"
)

const (
	// pageSize bounds the memory of a list, because objects may exceed a megabyte. metadataPageSize is for lists of
	// metadata.
	pageSize         = 100
	metadataPageSize = 500
	// requestTimeout bounds every request but a watch.
	requestTimeout = 30 * time.Second
)

var (
	// ErrNotServed means that the API server definitely does not serve the kind.
	ErrNotServed = errors.New("the API server does not serve the kind")
	// ErrCannotBeFollowed means that the kind is served, but cannot be listed and watched.
	ErrCannotBeFollowed = errors.New("it cannot be followed")
	// ErrNotFound means that the object does not exist.
	ErrNotFound = errors.New("no such object")
	// ErrExpired means that a list or watch cannot continue from its version: list again.
	ErrExpired = errors.New("too old to continue from")
	// ErrOtherCluster means that another cluster answers than at first.
	ErrOtherCluster = errors.New("another cluster answers at the API server's address")
)

// Source is one cluster's API server.
type Source struct {
	api     rest.Interface
	cluster string

	mu    sync.Mutex
	epoch string
	// older holds the kinds to request in their older version.
	older map[event.GroupResource]bool
}

// New returns a source for the cluster with this name on NATS.
func New(cfg *rest.Config, cluster string) (*Source, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // The API server limits requests itself.
	cfg.Timeout = 0
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	api, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client of the API server: %w", err)
	}
	return &Source{api: api, cluster: cluster, older: map[event.GroupResource]bool{}}, nil
}

// ClusterUID returns the cluster's identity, the UID of its kube-system namespace. After the first answer, any other
// identity is [ErrOtherCluster].
func (s *Source) ClusterUID(ctx context.Context) (string, error) {
	var namespace metav1.PartialObjectMetadata
	if err := s.sendAndDecode(ctx, s.api.Get().AbsPath("/api/v1/namespaces", metav1.NamespaceSystem), &namespace); err != nil {
		return "", fmt.Errorf("reading the cluster's identity (namespace %s): %w", metav1.NamespaceSystem, err)
	}
	epoch := string(namespace.UID)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.epoch != "" && s.epoch != epoch {
		return "", fmt.Errorf("%w: %s, not %s", ErrOtherCluster, epoch, s.epoch)
	}
	s.epoch = epoch
	return epoch, nil
}

// Page is a part of a list.
type Page struct {
	Objects []Object
	// Version is the resourceVersion of the whole list, the same on every page.
	Version string
	// Next is the token of the next page. It is empty on the last one.
	Next string
}

// List reads one page of the cluster's present state, not of a cache. An empty token requests the first page.
func (s *Source) List(ctx context.Context, kind kinds.Kind, token string) (Page, error) {
	size := pageSize
	if kind.MetadataOnly {
		size = metadataPageSize
	}
	params := map[string]string{"limit": strconv.Itoa(size)}
	if token != "" {
		params["continue"] = token
	}
	return s.listPage(ctx, kind, params)
}

// ListNamed lists the object with a name, if it exists. It needs only the right to list.
func (s *Source) ListNamed(ctx context.Context, kind kinds.Kind, name string) (Page, error) {
	return s.listPage(ctx, kind, map[string]string{"fieldSelector": fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
}

func (s *Source) listPage(ctx context.Context, kind kinds.Kind, params map[string]string) (Page, error) {
	kind = s.withServedVersion(kind)
	request := s.newCollectionRequest(kind).SetHeader("Accept", kube.AcceptHeader(kind, "PartialObjectMetadataList"))
	for name, value := range params {
		request.Param(name, value)
	}
	var list struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	err := s.sendAndDecode(ctx, request, &list)
	if apierrors.IsNotFound(err) {
		err = s.confirmNotServed(ctx, kind, err)
	}
	if err != nil {
		return Page{}, fmt.Errorf("listing %s: %w", kind.GroupResource, wrapExpiredError(err))
	}
	page := Page{Version: list.Metadata.ResourceVersion, Next: list.Metadata.Continue}
	for _, item := range list.Items {
		object, err := s.toObject(kind, item)
		if err != nil {
			return Page{}, fmt.Errorf("listing %s: %w", kind.GroupResource, err)
		}
		page.Objects = append(page.Objects, object)
	}
	return page, nil
}

// CurrentResourceVersion returns the resourceVersion that a list of the kind would have now. If the kind is not found,
// it returns [ErrNotServed] without a confirmation, so callers must not conclude more from it.
func (s *Source) CurrentResourceVersion(ctx context.Context, kind kinds.Kind) (string, error) {
	kind = s.withServedVersion(kind)
	var list metav1.PartialObjectMetadataList
	err := s.sendAndDecode(ctx, s.newCollectionRequest(kind).SetHeader("Accept", kube.AcceptHeader(withMetadataOnly(kind), "PartialObjectMetadataList")).
		Param("limit", "1"), &list)
	if apierrors.IsNotFound(err) {
		err = ErrNotServed
	}
	if err != nil {
		return "", fmt.Errorf("looking up the version of %s: %w", kind.GroupResource, err)
	}
	return list.ResourceVersion, nil
}

// newCollectionRequest returns a request for the objects of a kind, in its namespace if it has one.
func (s *Source) newCollectionRequest(kind kinds.Kind) *rest.Request {
	return s.api.Get().AbsPath(kube.GroupVersionPath(kind)).NamespaceIfScoped(kind.Namespace, kind.Namespace != "").Resource(kind.Resource)
}

// withMetadataOnly returns the kind without its content.
func withMetadataOnly(kind kinds.Kind) kinds.Kind {
	kind.MetadataOnly = true
	return kind
}

// Get reads one object. An invalid name is [ErrNotFound], as is the name of an object that does not exist.
func (s *Source) Get(ctx context.Context, kind kinds.Kind, namespace, name string) (Object, error) {
	for _, segment := range []string{namespace, name} {
		if wrong := content.IsPathSegmentName(segment); len(wrong) > 0 {
			return Object{}, fmt.Errorf("reading %s: %w: %.253q %s", kind.Kind, ErrNotFound, segment, strings.Join(wrong, ", "))
		}
	}
	if _, err := s.ClusterUID(ctx); err != nil {
		return Object{}, err
	}
	kind = s.withServedVersion(kind)
	request := s.api.Get().AbsPath(kube.GroupVersionPath(kind)).SetHeader("Accept", kube.AcceptHeader(kind, "PartialObjectMetadata")).
		NamespaceIfScoped(namespace, namespace != "").Resource(kind.Resource).Name(name)
	var raw json.RawMessage
	err := s.sendAndDecode(ctx, request, &raw)
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w (%w)", ErrNotFound, err)
	}
	if err != nil {
		return Object{}, fmt.Errorf("reading %s %s: %w", kind.Kind, path.Join(namespace, name), err)
	}
	return s.toObject(kind, raw)
}

func (s *Source) sendAndDecode(ctx context.Context, request *rest.Request, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	result := request.Do(ctx)
	if err := result.Error(); err != nil { // Its error holds the server's message; that of Raw does not.
		return err
	}
	raw, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func wrapExpiredError(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return fmt.Errorf("%w (%w)", ErrExpired, err)
	}
	return err
}
