package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Common holds the status fields of all kinds.
type Common struct {
	// state is PENDING, CREATED, ERROR or IGNORED.
	// +optional
	State State `json:"state,omitempty"`
	// reason explains the state. If OpenSearch refused a request, it is the text of OpenSearch.
	// +optional
	Reason string `json:"reason,omitempty"`
	// managedCluster is the UID of the OpenSearchCluster through which this object was last in sync.
	// +optional
	ManagedCluster string `json:"managedCluster,omitempty"`
	// managedServer is the UUID of the OpenSearch server that holds this object. If the OpenSearchCluster leads to
	// another server, nothing is written for the object.
	// +optional
	ManagedServer string `json:"managedServer,omitempty"`
	// observedGeneration is the generation that the conditions describe.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions has Ready, and OtherController while another controller writes these objects.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// DeclaredObject is an object that declares an entity in an OpenSearch cluster, such as a user.
//
// +kubebuilder:object:generate=false
type DeclaredObject interface {
	metav1.Object
	// Cluster returns the name of the OpenSearchCluster, in the namespace of the object.
	Cluster() string
	// OpenSearchName returns the name of the entity in OpenSearch; empty if the object has no entity of its own.
	OpenSearchName() string
	// CommonStatus returns the common part of the object's status.
	CommonStatus() *Common
	// ExistedBefore reports whether OpenSearch had an entity with this name before the object. It is nil if this is
	// unknown, or if the kind identifies its entities in another way.
	ExistedBefore() *bool
}

// openSearchName returns the name of an object's entity in OpenSearch.
func openSearchName(override string, meta metav1.ObjectMeta) string {
	if override != "" {
		return override
	}
	return meta.Name
}
