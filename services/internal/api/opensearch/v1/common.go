package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Common is the part of a status that all kinds have.
type Common struct {
	// State is PENDING, CREATED, ERROR or IGNORED.
	// +optional
	State State `json:"state,omitempty"`
	// Reason says why, in OpenSearch's own words where it refused.
	// +optional
	Reason string `json:"reason,omitempty"`
	// ManagedCluster is the UID of the OpenSearchCluster through which this object was last in step.
	// +optional
	ManagedCluster string `json:"managedCluster,omitempty"`
	// ManagedServer is the UUID of the OpenSearch that this object is in. On another one, where the OpenSearchCluster may lead by now,
	// nothing is written for the object.
	// +optional
	ManagedServer string `json:"managedServer,omitempty"`
	// ObservedGeneration is the generation that the conditions speak of.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
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
