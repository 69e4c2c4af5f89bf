// Package source reads the API server: lists page by page, watches, and single
// objects, each as an event with a fingerprint of its meaning. Objects stay the JSON
// that the server sent, so that any kind can be read, one object in memory at a time.
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
	// pageSize bounds the memory of a list: objects may have more than a megabyte, but not their metadata.
	pageSize         = 100
	metadataPageSize = 500
	// requestTimeout bounds every request but a watch.
	requestTimeout = 30 * time.Second
)

var (
	// ErrNotServed is returned when the API server surely does not have the kind.
	ErrNotServed = errors.New("the API server does not serve the kind")
	// ErrCannotBeFollowed is returned when the kind is served, but not such that it could be listed and watched.
	ErrCannotBeFollowed = errors.New("it cannot be followed")
	// ErrNotFound is returned when there is no such object.
	ErrNotFound = errors.New("no such object")
	// ErrExpired is returned when a list or watch cannot go on from where it was: list again.
	ErrExpired = errors.New("too old to go on from")
	// ErrOtherCluster is returned when another cluster answers than did at first.
	ErrOtherCluster = errors.New("another cluster answers at the API server's address")
)

// Source is one cluster's API server.
type Source struct {
	api     rest.Interface
	cluster string

	mu    sync.Mutex
	epoch string
	// older are the kinds to ask for in their older version.
	older map[event.GroupResource]bool
}

// New makes a source for the cluster that the bus knows by the given name.
func New(cfg *rest.Config, cluster string) (*Source, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.QPS = -1 // The API server knows better whom to slow down.
	cfg.Timeout = 0
	cfg.GroupVersion = &schema.GroupVersion{}
	cfg.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	api, err := rest.UnversionedRESTClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("creating client of the API server: %w", err)
	}
	return &Source{api: api, cluster: cluster, older: map[event.GroupResource]bool{}}, nil
}

// Epoch asks for the cluster's identity, the UID of its kube-system namespace. From
// the first answer on any other is [ErrOtherCluster].
func (s *Source) Epoch(ctx context.Context) (string, error) {
	var namespace metav1.PartialObjectMetadata
	if err := s.read(ctx, s.api.Get().AbsPath("/api/v1/namespaces", metav1.NamespaceSystem), &namespace); err != nil {
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
	// Next leads to the next page; empty on the last one.
	Next string
}

// List reads one page of what the cluster holds now, not of what some cache does. An
// empty token asks for the first page.
func (s *Source) List(ctx context.Context, kind kinds.Kind, token string) (Page, error) {
	size := pageSize
	if kind.MetadataOnly {
		size = metadataPageSize
	}
	params := map[string]string{"limit": strconv.Itoa(size)}
	if token != "" {
		params["continue"] = token
	}
	return s.list(ctx, kind, params)
}

// ListNamed lists the one object of a name, if there is one. It needs no right but that to list.
func (s *Source) ListNamed(ctx context.Context, kind kinds.Kind, name string) (Page, error) {
	return s.list(ctx, kind, map[string]string{"fieldSelector": fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()})
}

func (s *Source) list(ctx context.Context, kind kinds.Kind, params map[string]string) (Page, error) {
	kind = s.served(kind)
	request := s.all(kind).SetHeader("Accept", kube.Accept(kind, "PartialObjectMetadataList"))
	for name, value := range params {
		request.Param(name, value)
	}
	var list struct {
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	err := s.read(ctx, request, &list)
	if apierrors.IsNotFound(err) {
		err = s.confirmAbsence(ctx, kind, err)
	}
	if err != nil {
		return Page{}, fmt.Errorf("listing %s: %w", kind.GroupResource, expired(err))
	}
	page := Page{Version: list.Metadata.ResourceVersion, Next: list.Metadata.Continue}
	for _, item := range list.Items {
		object, err := s.object(kind, item)
		if err != nil {
			return Page{}, fmt.Errorf("listing %s: %w", kind.GroupResource, err)
		}
		page.Objects = append(page.Objects, object)
	}
	return page, nil
}

// Version is the resourceVersion that a list of the kind would have now. Of one that is not there
// it is [ErrNotServed]; nobody should conclude more from that.
func (s *Source) Version(ctx context.Context, kind kinds.Kind) (string, error) {
	kind = s.served(kind)
	var list metav1.PartialObjectMetadataList
	err := s.read(ctx, s.all(kind).SetHeader("Accept", kube.Accept(metadata(kind), "PartialObjectMetadataList")).
		Param("limit", "1"), &list)
	if apierrors.IsNotFound(err) {
		err = ErrNotServed
	}
	if err != nil {
		return "", fmt.Errorf("looking up the version of %s: %w", kind.GroupResource, err)
	}
	return list.ResourceVersion, nil
}

// all is a request for the objects of a kind: of its namespace, if it is followed in one alone.
func (s *Source) all(kind kinds.Kind) *rest.Request {
	return s.api.Get().AbsPath(kube.Prefix(kind)).NamespaceIfScoped(kind.Namespace, kind.Namespace != "").Resource(kind.Resource)
}

// metadata is the kind without its content.
func metadata(kind kinds.Kind) kinds.Kind {
	kind.MetadataOnly = true
	return kind
}

// Get reads one object. What cannot be a name is [ErrNotFound] like a name that nobody has.
func (s *Source) Get(ctx context.Context, kind kinds.Kind, namespace, name string) (Object, error) {
	for _, segment := range []string{namespace, name} {
		if wrong := content.IsPathSegmentName(segment); len(wrong) > 0 {
			return Object{}, fmt.Errorf("reading %s: %w: %.253q %s", kind.Kind, ErrNotFound, segment, strings.Join(wrong, ", "))
		}
	}
	if _, err := s.Epoch(ctx); err != nil {
		return Object{}, err
	}
	kind = s.served(kind)
	request := s.api.Get().AbsPath(kube.Prefix(kind)).SetHeader("Accept", kube.Accept(kind, "PartialObjectMetadata")).
		NamespaceIfScoped(namespace, namespace != "").Resource(kind.Resource).Name(name)
	var raw json.RawMessage
	err := s.read(ctx, request, &raw)
	if apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w (%w)", ErrNotFound, err)
	}
	if err != nil {
		return Object{}, fmt.Errorf("reading %s %s: %w", kind.Kind, path.Join(namespace, name), err)
	}
	return s.object(kind, raw)
}

func (s *Source) read(ctx context.Context, request *rest.Request, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	result := request.Do(ctx)
	if err := result.Error(); err != nil { // It has the server's words; that of Raw has not.
		return err
	}
	raw, err := result.Raw()
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}

func expired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return fmt.Errorf("%w (%w)", ErrExpired, err)
	}
	return err
}
