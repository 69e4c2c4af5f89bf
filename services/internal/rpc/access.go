package rpc

import (
	"fmt"
	"strings"

	"github.com/entail-dev/entail/services/internal/event"
)

// Right is a right that a caller needs at Kubernetes: Verb on a resource, or on a URL path. An empty Name means all
// objects of the kind.
type Right struct {
	Verb string
	event.GroupResource
	Namespace, Name string
	Path            string
}

// String returns a text for users, such as "get stores.core.platform-mesh.io/demo".
func (r Right) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	return r.Verb + " " + strings.TrimSuffix(event.Key{GroupResource: r.GroupResource, Namespace: r.Namespace, Name: r.Name}.String(), "/")
}

// Access returns the right that a request needs. An error is the caller's mistake; make it with [Invalid].
type Access func(request any) (Right, error)

// Can requires a verb on all objects of a resource.
func Can(verb string, r event.GroupResource) Access {
	return func(any) (Right, error) { return Right{Verb: verb, GroupResource: r}, nil }
}

// CanNamed requires a verb on the cluster-scoped object that the request names:
//
//	rpc.CanNamed("get", stores, (*storev1.GetStoreRequest).GetName)
func CanNamed[M any](verb string, r event.GroupResource, name func(*M) string) Access {
	return func(request any) (Right, error) {
		message, ok := request.(*M)
		if !ok {
			return Right{}, fmt.Errorf("access rule for %T got %T", message, request)
		}
		return Right{Verb: verb, GroupResource: r, Name: name(message)}, nil
	}
}

// CanIn requires a verb on all objects of a resource in the namespace that the request names, or in all namespaces if
// it names none.
func CanIn[M any](verb string, r event.GroupResource, namespace func(*M) string) Access {
	return func(request any) (Right, error) {
		message, ok := request.(*M)
		if !ok {
			return Right{}, fmt.Errorf("access rule for %T got %T", message, request)
		}
		return Right{Verb: verb, GroupResource: r, Namespace: namespace(message)}, nil
	}
}

// CanPath requires a verb on a URL path, for answers about the system itself: CanPath("get", "/entail/status").
func CanPath(verb, path string) Access {
	return func(any) (Right, error) { return Right{Verb: verb, Path: path}, nil }
}
