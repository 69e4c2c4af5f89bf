package rpc

import (
	"fmt"
	"strings"

	"github.com/entail-dev/entail/services/internal/event"
)

// RequiredRight is a Kubernetes right that a caller needs: Verb on a resource, or on a URL path. An empty Name means
// all objects of the kind.
type RequiredRight struct {
	Verb string
	event.GroupResource
	Namespace, Name string
	Path            string
}

// String returns a text for users, such as "get stores.core.platform-mesh.io/demo".
func (r RequiredRight) String() string {
	if r.Path != "" {
		return r.Verb + " " + r.Path
	}
	return r.Verb + " " + strings.TrimSuffix(event.Key{GroupResource: r.GroupResource, Namespace: r.Namespace, Name: r.Name}.String(), "/")
}

// AccessRule returns the right that a request needs. It returns an [InvalidError] if the request is wrong.
type AccessRule func(request any) (RequiredRight, error)

// RequireVerb requires a verb on all objects of a resource.
func RequireVerb(verb string, r event.GroupResource) AccessRule {
	return func(any) (RequiredRight, error) { return RequiredRight{Verb: verb, GroupResource: r}, nil }
}

// RequireVerbOnName requires a verb on the cluster-scoped object that the request names:
//
//	rpc.RequireVerbOnName("get", stores, (*storev1.GetStoreRequest).GetName)
func RequireVerbOnName[M any](verb string, r event.GroupResource, name func(*M) string) AccessRule {
	return func(request any) (RequiredRight, error) {
		message, ok := request.(*M)
		if !ok {
			return RequiredRight{}, fmt.Errorf("access rule for %T got %T", message, request)
		}
		return RequiredRight{Verb: verb, GroupResource: r, Name: name(message)}, nil
	}
}

// RequireVerbInNamespace requires a verb on all objects of a resource in the namespace that the request names. If the
// request names no namespace, the verb is required in all namespaces.
func RequireVerbInNamespace[M any](verb string, r event.GroupResource, namespace func(*M) string) AccessRule {
	return func(request any) (RequiredRight, error) {
		message, ok := request.(*M)
		if !ok {
			return RequiredRight{}, fmt.Errorf("access rule for %T got %T", message, request)
		}
		return RequiredRight{Verb: verb, GroupResource: r, Namespace: namespace(message)}, nil
	}
}

// RequireVerbOnPath requires a verb on a URL path, for answers about Entail itself: RequireVerbOnPath("get",
// "/entail/status").
func RequireVerbOnPath(verb, path string) AccessRule {
	return func(any) (RequiredRight, error) { return RequiredRight{Verb: verb, Path: path}, nil }
}
