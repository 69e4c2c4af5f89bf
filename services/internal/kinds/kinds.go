// Package kinds lists the kinds of objects that the services read or write. For each kind it states which parts of an
// object the watcher publishes on NATS. It holds no state.
package kinds

import (
	"slices"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
	iaplv1alpha1 "github.com/entail-dev/entail/services/internal/api/iapl/v1alpha1"
	rolev1alpha1 "github.com/entail-dev/entail/services/internal/api/role/v1alpha1"
	"github.com/entail-dev/entail/services/internal/event"
)

// Kind is a kind of object that the watcher publishes.
type Kind struct {
	event.GroupResource
	Version, Kind string
	// Status means that a service reads the status of the kind. Then a change of the status alone is also published.
	Status bool
	// MetadataOnly means that only the metadata of an object is published.
	MetadataOnly bool
	// FallbackVersion is a version to use where Version is not served; empty if there is none.
	FallbackVersion string
	// ClusterScoped kinds are cluster-scoped.
	ClusterScoped bool
	// Optional kinds do not exist in many clusters.
	Optional bool
	// ReferencedOnly means that an object is published only if other objects refer to it, and only with name, UID and
	// version. Such a kind has no snapshot marker, so the absence of an object proves nothing.
	ReferencedOnly bool
	// Namespace is the only published namespace; empty means all namespaces.
	Namespace string
}

// InNamespace returns the kind restricted to one namespace.
func (k Kind) InNamespace(namespace string) Kind {
	k.Namespace = namespace
	return k
}

// GroupVersionResource returns the kind in the form that API clients use.
func (k Kind) GroupVersionResource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// ConsumedKinds lists the kinds that services read, except [Secrets]. Only the Secrets that an object names are
// published.
func ConsumedKinds() []Kind {
	return slices.Concat([]Kind{
		Stores(), AuthorizationModels(), PolicyDocuments(), ImpliedRoles(), RoleBindings(), ClusterRoleBindings(), Roles(), ClusterRoles(),
		APIBindings(), APIExports(), APIResourceSchemas(), AccountInfos(), CustomResourceDefinitions(),
	}, IAMKinds(), OpenSearchKinds(), LegacyOpenSearchKinds())
}

// ByResource returns the kind of a resource.
func ByResource(r event.GroupResource) (Kind, bool) {
	k, ok := byResource()[r]
	return k, ok
}

// byResource holds all kinds by resource. It is a map because every reconciliation looks up a kind.
//
//nolint:gochecknoglobals // It never changes.
var byResource = sync.OnceValue(func() map[event.GroupResource]Kind {
	of := map[event.GroupResource]Kind{}
	for _, k := range append(ConsumedKinds(), Secrets()) {
		of[k.GroupResource] = k
	}
	return of
})

// TargetKind returns a kind whose objects are published as targets of bindings, with their metadata only. The same
// kind may also be published with its full objects.
func TargetKind(r event.GroupResource, version, kind string) Kind {
	r.Target = true
	return Kind{GroupResource: r, Version: version, Kind: kind, MetadataOnly: true, Optional: true}
}

// AllTargets returns a resource that stands for all target kinds.
func AllTargets() event.GroupResource { return event.GroupResource{Target: true} }

// Stores returns the kind Store.
func Stores() Kind {
	return platformMeshKind(corev1alpha1.Stores, "Store")
}

// AuthorizationModels returns the kind AuthorizationModel.
func AuthorizationModels() Kind {
	return platformMeshKind(corev1alpha1.AuthorizationModels, "AuthorizationModel")
}

// PolicyDocuments returns the kind PolicyDocument.
func PolicyDocuments() Kind {
	gv := iaplv1alpha1.GroupVersion
	return Kind{
		GroupResource: event.GroupResource{Group: gv.Group, Resource: iaplv1alpha1.Resource},
		Version:       gv.Version, Kind: "PolicyDocument", Status: true,
	}
}

// ImpliedRoles returns the kind ImpliedRoles.
func ImpliedRoles() Kind {
	gv := rolev1alpha1.GroupVersion
	return Kind{
		GroupResource: event.GroupResource{Group: gv.Group, Resource: rolev1alpha1.Resource},
		Version:       gv.Version, Kind: "ImpliedRoles", Status: true,
	}
}

// RoleBindings returns the kind RoleBinding.
func RoleBindings() Kind { return rbacKind("rolebindings", "RoleBinding") }

// ClusterRoleBindings returns the kind ClusterRoleBinding.
func ClusterRoleBindings() Kind {
	kind := rbacKind("clusterrolebindings", "ClusterRoleBinding")
	kind.ClusterScoped = true
	return kind
}

// Roles returns the kind Role of RBAC. Services only check whether a Role exists.
func Roles() Kind {
	kind := rbacKind("roles", "Role")
	kind.MetadataOnly = true
	return kind
}

// ClusterRoles returns the kind ClusterRole. Services only check whether a ClusterRole exists.
func ClusterRoles() Kind {
	kind := rbacKind("clusterroles", "ClusterRole")
	kind.MetadataOnly, kind.ClusterScoped = true, true
	return kind
}

// CustomResourceDefinitions returns the kind CustomResourceDefinition. Its status shows whether a resource is served.
func CustomResourceDefinitions() Kind {
	return Kind{
		GroupResource: event.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		Version:       "v1", Kind: "CustomResourceDefinition", Status: true, ClusterScoped: true,
	}
}

// APIBindings returns the kind APIBinding of kcp.
func APIBindings() Kind {
	kind := kcpKind("apibindings", "APIBinding")
	kind.Version, kind.FallbackVersion, kind.Status = "v1alpha2", "v1alpha1", true
	return kind
}

// APIExports returns the kind APIExport of kcp.
func APIExports() Kind {
	kind := kcpKind("apiexports", "APIExport")
	kind.Version, kind.FallbackVersion = "v1alpha2", "v1alpha1"
	return kind
}

// APIResourceSchemas returns the kind APIResourceSchema of kcp.
func APIResourceSchemas() Kind { return kcpKind("apiresourceschemas", "APIResourceSchema") }

// AccountInfos returns the kind AccountInfo, which names the account that owns a kcp workspace.
func AccountInfos() Kind {
	kind := platformMeshKind(corev1alpha1.AccountInfos, "AccountInfo")
	kind.Status, kind.Optional = false, true
	return kind
}

func kcpKind(resource, kind string) Kind {
	return Kind{
		GroupResource: event.GroupResource{Group: "apis.kcp.io", Resource: resource},
		Version:       "v1alpha1", Kind: kind, Optional: true, ClusterScoped: true,
	}
}

func rbacKind(resource, kind string) Kind {
	gv := rbacv1.SchemeGroupVersion
	return Kind{GroupResource: event.GroupResource{Group: gv.Group, Resource: resource}, Version: gv.Version, Kind: kind}
}

func platformMeshKind(resource, kind string) Kind {
	gv := corev1alpha1.GroupVersion
	return Kind{
		GroupResource: event.GroupResource{Group: gv.Group, Resource: resource},
		Version:       gv.Version, Kind: kind, Status: true, ClusterScoped: true,
	}
}
