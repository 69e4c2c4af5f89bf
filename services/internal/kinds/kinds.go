// Package kinds names every kind of object that the project follows or writes, and what of
// it travels on the bus.
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

// Kind is a kind of object that the watcher follows.
type Kind struct {
	event.GroupResource
	Version, Kind string
	// Status says that some consumer reads the kind's status: then a change of the
	// status alone is published too.
	Status bool
	// MetadataOnly keeps everything but metadata off the bus.
	MetadataOnly bool
	// Older is a version to follow where Version is not served; empty if only Version will do.
	Older string
	// Global kinds have no namespace.
	Global bool
	// Optional kinds are missing in many clusters, for good.
	Optional bool
	// Named says that of these objects only those are on the bus that others name, each as its name, UID and version and
	// no more. No marker speaks of them: that one is absent says nothing.
	Named bool
	// Namespace is the only one that is followed; empty if all are.
	Namespace string
}

// In is the kind in one namespace.
func (k Kind) In(namespace string) Kind {
	k.Namespace = namespace
	return k
}

// Served is the kind as the API server serves it.
func (k Kind) Served() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: k.Group, Version: k.Version, Resource: k.Resource}
}

// All lists every kind that some service consumes, but for [Secrets], of which nobody follows all.
func All() []Kind {
	return slices.Concat([]Kind{
		Stores(), AuthorizationModels(), PolicyDocuments(), ImpliedRoles(), RoleBindings(), ClusterRoleBindings(), Roles(), ClusterRoles(),
		Bindings(), Exports(), ResourceSchemas(), AccountInfos(), Definitions(),
	}, IAM(), OpenSearch(), LegacyOpenSearch())
}

// Of finds the kind of a resource.
func Of(r event.GroupResource) (Kind, bool) {
	k, ok := byResource()[r]
	return k, ok
}

// byResource are all kinds; each pass asks for one.
//
//nolint:gochecknoglobals // It never changes.
var byResource = sync.OnceValue(func() map[event.GroupResource]Kind {
	of := map[event.GroupResource]Kind{}
	for _, k := range append(All(), Secrets()) {
		of[k.GroupResource] = k
	}
	return of
})

// Target is a kind whose objects are followed because roles can be given on them: by their metadata alone, whatever else
// follows them.
func Target(r event.GroupResource, version, kind string) Kind {
	r.Target = true
	return Kind{GroupResource: r, Version: version, Kind: kind, MetadataOnly: true, Optional: true}
}

// Targets stands for all such kinds.
func Targets() event.GroupResource { return event.GroupResource{Target: true} }

// Stores is the kind Store.
func Stores() Kind {
	return platformMesh(corev1alpha1.Stores, "Store")
}

// AuthorizationModels is the kind AuthorizationModel.
func AuthorizationModels() Kind {
	return platformMesh(corev1alpha1.AuthorizationModels, "AuthorizationModel")
}

// PolicyDocuments is the kind PolicyDocument.
func PolicyDocuments() Kind {
	gv := iaplv1alpha1.GroupVersion
	return Kind{
		GroupResource: event.GroupResource{Group: gv.Group, Resource: iaplv1alpha1.Resource},
		Version:       gv.Version, Kind: "PolicyDocument", Status: true,
	}
}

// ImpliedRoles is the kind ImpliedRoles.
func ImpliedRoles() Kind {
	gv := rolev1alpha1.GroupVersion
	return Kind{
		GroupResource: event.GroupResource{Group: gv.Group, Resource: rolev1alpha1.Resource},
		Version:       gv.Version, Kind: "ImpliedRoles", Status: true,
	}
}

// RoleBindings is the kind RoleBinding.
func RoleBindings() Kind { return rbac("rolebindings", "RoleBinding") }

// ClusterRoleBindings is the kind ClusterRoleBinding.
func ClusterRoleBindings() Kind {
	kind := rbac("clusterrolebindings", "ClusterRoleBinding")
	kind.Global = true
	return kind
}

// Roles is the kind Role, of which only the existence matters.
func Roles() Kind {
	kind := rbac("roles", "Role")
	kind.MetadataOnly = true
	return kind
}

// ClusterRoles is the kind ClusterRole, of which only the existence matters.
func ClusterRoles() Kind {
	kind := rbac("clusterroles", "ClusterRole")
	kind.MetadataOnly, kind.Global = true, true
	return kind
}

// Definitions is the kind CustomResourceDefinition. Its status tells when a resource is served.
func Definitions() Kind {
	return Kind{
		GroupResource: event.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		Version:       "v1", Kind: "CustomResourceDefinition", Status: true, Global: true,
	}
}

// Bindings is the kind APIBinding of kcp.
func Bindings() Kind {
	kind := kcp("apibindings", "APIBinding")
	kind.Version, kind.Older, kind.Status = "v1alpha2", "v1alpha1", true
	return kind
}

// Exports is the kind APIExport of kcp.
func Exports() Kind {
	kind := kcp("apiexports", "APIExport")
	kind.Version, kind.Older = "v1alpha2", "v1alpha1"
	return kind
}

// ResourceSchemas is the kind APIResourceSchema of kcp.
func ResourceSchemas() Kind { return kcp("apiresourceschemas", "APIResourceSchema") }

// AccountInfos is the kind AccountInfo, which tells what a kcp workspace belongs to.
func AccountInfos() Kind {
	kind := platformMesh(corev1alpha1.AccountInfos, "AccountInfo")
	kind.Status, kind.Optional = false, true
	return kind
}

func kcp(resource, kind string) Kind {
	return Kind{
		GroupResource: event.GroupResource{Group: "apis.kcp.io", Resource: resource},
		Version:       "v1alpha1", Kind: kind, Optional: true, Global: true,
	}
}

func rbac(resource, kind string) Kind {
	gv := rbacv1.SchemeGroupVersion
	return Kind{GroupResource: event.GroupResource{Group: gv.Group, Resource: resource}, Version: gv.Version, Kind: kind}
}

func platformMesh(resource, kind string) Kind {
	gv := corev1alpha1.GroupVersion
	return Kind{
		GroupResource: event.GroupResource{Group: gv.Group, Resource: resource},
		Version:       gv.Version, Kind: kind, Status: true, Global: true,
	}
}
