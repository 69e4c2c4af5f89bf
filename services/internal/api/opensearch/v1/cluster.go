package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Connection says how to reach an OpenSearch cluster that no operator runs.
type Connection struct {
	// URL is where its REST API is, such as https://search.example.com:9200.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https://[^/?#@]+/?$`
	URL string `json:"url"`
	// ClientCertificateSecret holds an admin certificate, as tls.crt and tls.key. It is preferred to a password.
	// +optional
	ClientCertificateSecret *corev1.LocalObjectReference `json:"clientCertificateSecret,omitempty"`
	// AdminCredentialsSecret holds username and password of who may use the security API.
	// +optional
	AdminCredentialsSecret *corev1.LocalObjectReference `json:"adminCredentialsSecret,omitempty"`
	// CASecret holds, as ca.crt, by whom the server's certificate is issued.
	// +optional
	CASecret *corev1.LocalObjectReference `json:"caSecret,omitempty"`
	// InsecureSkipVerify does without a CA: whoever is on the way can then read every password.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// ClusterGeneral is what the public operator's clusters say of where they are.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterGeneral struct {
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// +optional
	HTTPPort int32 `json:"httpPort,omitempty"`
	// OperatorClusterURL is a host, whatever its name says.
	// +optional
	OperatorClusterURL string `json:"operatorClusterURL,omitempty"`
}

// ClusterSecurityConfig names what the public operator's clusters are managed with.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterSecurityConfig struct {
	// +optional
	AdminCredentialsSecret corev1.LocalObjectReference `json:"adminCredentialsSecret,omitempty"`
	// +optional
	OperatorClientCert *corev1.LocalObjectReference `json:"operatorClientCert,omitempty"`
	// +optional
	OperatorClientServerName string `json:"operatorClientServerName,omitempty"`
}

// ClusterHTTP says how the public operator's clusters encrypt.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterHTTP struct {
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// +optional
	Generate bool `json:"generate,omitempty"`
	// +optional
	Secret corev1.LocalObjectReference `json:"secret,omitempty"`
	// +optional
	CASecret corev1.LocalObjectReference `json:"caSecret,omitempty"`
}

// ClusterTLS is about certificates.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterTLS struct {
	// +optional
	HTTP *ClusterHTTP `json:"http,omitempty"`
}

// ClusterSecurity is about who may come in.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterSecurity struct {
	// +optional
	Config *ClusterSecurityConfig `json:"config,omitempty"`
	// +optional
	TLS *ClusterTLS `json:"tls,omitempty"`
}

// OpenSearchClusterSpec is what is read of a cluster. Of one that the public operator runs the rest is its own.
//
// +kubebuilder:pruning:PreserveUnknownFields
type OpenSearchClusterSpec struct {
	// Connection to a cluster that no operator runs.
	// +optional
	Connection *Connection `json:"connection,omitempty"`
	// +optional
	General ClusterGeneral `json:"general,omitempty"`
	// +optional
	Security *ClusterSecurity `json:"security,omitempty"`
}

// Running is the phase of a cluster of the public operator that answers.
const Running = "RUNNING"

// OpenSearchClusterStatus is what the public operator says of its cluster.
//
// +kubebuilder:pruning:PreserveUnknownFields
type OpenSearchClusterStatus struct {
	// +optional
	Phase string `json:"phase,omitempty"`
	// Conditions has Reachable: whether OpenSearch answers opensearch-sync, and if not, why.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OpenSearchCluster is an OpenSearch cluster, or how to reach one.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:shortName=os;opensearch,categories=entail
// +kubebuilder:subresource:status
// +kubebuilder:metadata:labels=app.kubernetes.io/part-of=entail
// +kubebuilder:printcolumn:name="URL",type=string,JSONPath=`.spec.connection.url`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reachable",type=string,JSONPath=`.status.conditions[?(@.type=="Reachable")].reason`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type OpenSearchCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec OpenSearchClusterSpec `json:"spec,omitempty"`
	// +optional
	Status OpenSearchClusterStatus `json:"status,omitempty"`
}

// OpenSearchClusterList is a list of clusters.
//
// +kubebuilder:object:root=true
type OpenSearchClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []OpenSearchCluster `json:"items"`
}
