package rpc

import (
	"fmt"
	"strings"

	"github.com/entail-dev/entail/services/internal/event"
)

// Right is what Kubernetes is asked about a caller: may they do Verb to this resource
// (all of its kind when Name is empty), or to the path that names no resource.
type Right struct {
	Verb string
	event.GroupResource
	Namespace, Name string
	Path            string
}

// String is for people: "get stores.core.platform-mesh.io/demo".
func (r Right) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	return r.Verb + " " + strings.TrimSuffix(event.Key{GroupResource: r.GroupResource, Namespace: r.Namespace, Name: r.Name}.String(), "/")
}

// Access tells which right a request needs. An error is the caller's mistake, made with [Invalid].
type Access func(request any) (Right, error)

// Can asks for a verb on all objects of a resource.
func Can(verb string, r event.GroupResource) Access {
	return func(any) (Right, error) { return Right{Verb: verb, GroupResource: r}, nil }
}

// CanNamed asks for a verb on the cluster-scoped object that the request names:
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

// CanIn asks for a verb on all objects of a resource in the namespace that the request
// names; if it names none, in every namespace.
func CanIn[M any](verb string, r event.GroupResource, namespace func(*M) string) Access {
	return func(request any) (Right, error) {
		message, ok := request.(*M)
		if !ok {
			return Right{}, fmt.Errorf("access rule for %T got %T", message, request)
		}
		return Right{Verb: verb, GroupResource: r, Namespace: namespace(message)}, nil
	}
}

// CanPath asks for a verb on a path that is no resource, for answers about the system
// itself: CanPath("get", "/entail/status").
func CanPath(verb, path string) Access {
	return func(any) (Right, error) { return Right{Verb: verb, Path: path}, nil }
}
