package topology

import (
	"slices"

	corev1alpha1 "github.com/entail-dev/entail/services/internal/api/core/v1alpha1"
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
}

// Service is one consumer of changes. Its name is also that of its durable.
type Service struct {
	Name  string
	Kinds []event.GroupResource
}

// Names of services.
const (
	Watcher   = "watcher"
	StoreSync = "store-sync"
	TupleSync = "tuple-sync"
)

// Stores is the kind Store.
func Stores() Kind {
	return platformMesh(corev1alpha1.Stores, "Store")
}

// AuthorizationModels is the kind AuthorizationModel.
func AuthorizationModels() Kind {
	return platformMesh(corev1alpha1.AuthorizationModels, "AuthorizationModel")
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
	return []Kind{Stores(), AuthorizationModels()}
}

// Services lists every consumer.
func Services() []Service {
	core := []event.GroupResource{Stores().GroupResource, AuthorizationModels().GroupResource}
	return []Service{{Name: StoreSync, Kinds: core}, {Name: TupleSync, Kinds: core}}
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
