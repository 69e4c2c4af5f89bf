package topology

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

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
	// Optional kinds are missing in many clusters, for good.
	Optional bool
}

// Service is one consumer of changes. Its name is also that of its durable.
type Service struct {
	Name  string
	Kinds []event.GroupResource
}

// Names of services.
const (
	Watcher     = "watcher"
	StoreSync   = "store-sync"
	TupleSync   = "tuple-sync"
	ImpliedRole = "implied-role"
)

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

// Roles is the kind Role, of which only the existence matters.
func Roles() Kind {
	kind := rbac("roles", "Role")
	kind.MetadataOnly = true
	return kind
}

// ClusterRoles is the kind ClusterRole, of which only the existence matters.
func ClusterRoles() Kind {
	kind := rbac("clusterroles", "ClusterRole")
	kind.MetadataOnly = true
	return kind
}

// Definitions is the kind CustomResourceDefinition. Its status tells when a resource is served.
func Definitions() Kind {
	return Kind{
		GroupResource: event.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		Version:       "v1", Kind: "CustomResourceDefinition", Status: true,
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
		Version:       "v1alpha1", Kind: kind, Optional: true,
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
		Version:       gv.Version, Kind: kind, Status: true,
	}
}

// Kinds lists every kind that some service consumes.
func Kinds() []Kind {
	return []Kind{
		Stores(), AuthorizationModels(), PolicyDocuments(), ImpliedRoles(), RoleBindings(), Roles(), ClusterRoles(),
		Bindings(), Exports(), ResourceSchemas(), AccountInfos(), Definitions(),
	}
}

// Services lists every consumer.
func Services() []Service {
	core := []event.GroupResource{Stores().GroupResource, AuthorizationModels().GroupResource}
	roles := []event.GroupResource{
		ImpliedRoles().GroupResource, RoleBindings().GroupResource, Roles().GroupResource, ClusterRoles().GroupResource,
	}
	policies := []event.GroupResource{PolicyDocuments().GroupResource}
	accounts := []event.GroupResource{AccountInfos().GroupResource}
	apis := []event.GroupResource{
		Definitions().GroupResource, Bindings().GroupResource, Exports().GroupResource, ResourceSchemas().GroupResource,
	}
	return []Service{
		{Name: StoreSync, Kinds: slices.Concat(core, policies, accounts, apis)},
		{Name: TupleSync, Kinds: slices.Concat(core, accounts)},
		{Name: ImpliedRole, Kinds: roles},
	}
}

// ServiceNamed finds a consumer.
func ServiceNamed(name string) (Service, bool) {
	all := Services()
	i := slices.IndexFunc(all, func(s Service) bool { return s.Name == name })
	if i < 0 {
		return Service{}, false
	}
	return all[i], true
}
