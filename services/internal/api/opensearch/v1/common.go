package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Common holds the status fields of all kinds.
type Common struct {
	// state is PENDING, CREATED, ERROR or IGNORED.
	// +optional
	State State `json:"state,omitempty"`
	// reason says why the object has this state. If OpenSearch refused a request, it is the text of OpenSearch.
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

// Declared is an object that asks for something in an OpenSearch cluster.
//
// +kubebuilder:object:generate=false
type Declared interface {
	metav1.Object
	// Cluster is the name of the OpenSearchCluster, in the namespace of the object.
	Cluster() string
	// Entity is the name of what it asks for; empty if it asks for no thing of its own.
	Entity() string
	// State is the common part of its status.
	State() *Common
	// Existing tells whether OpenSearch had a thing of the name that is not the object's; nil if that was never found out, or
	// is not how the kind says whose a thing is.
	Existing() *bool
}

// entity is the name in OpenSearch of what an object asks for.
func entity(override string, meta metav1.ObjectMeta) string {
	if override != "" {
		return override
	}
	return meta.Name
}
