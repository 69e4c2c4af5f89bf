package v1

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Connection describes how to reach an OpenSearch cluster that no operator runs.
type Connection struct {
	// url is the address of the REST API: https with host and port, such as https://search.example.com:9200. The value
	// has at most 2,048 characters.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:Pattern=`^https://[^/?#@]+/?$`
	URL string `json:"url"`
	// clientCertificateSecret names a Secret with an admin certificate (tls.crt and tls.key). It is used instead of a
	// password if both are set.
	// +optional
	ClientCertificateSecret *corev1.LocalObjectReference `json:"clientCertificateSecret,omitempty"`
	// adminCredentialsSecret names a Secret with username and password of a user who may use the security API.
	// +optional
	AdminCredentialsSecret *corev1.LocalObjectReference `json:"adminCredentialsSecret,omitempty"`
	// caSecret names a Secret whose ca.crt holds the certificate authorities of the server. It is required, unless
	// insecureSkipVerify is true.
	// +optional
	CASecret *corev1.LocalObjectReference `json:"caSecret,omitempty"`
	// insecureSkipVerify turns off the check of the server's certificate. An attacker on the network path can then
	// read every password. The default is false.
	// +optional
	InsecureSkipVerify bool `json:"insecureSkipVerify,omitempty"`
}

// ClusterGeneral holds the address of a cluster of the public operator.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterGeneral struct {
	// serviceName is the name of the Service.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// httpPort is the port of the REST API.
	// +optional
	HTTPPort int32 `json:"httpPort,omitempty"`
	// operatorClusterURL is the host name of the REST API. It is not a URL.
	// +optional
	OperatorClusterURL string `json:"operatorClusterURL,omitempty"`
}

// ClusterSecurityConfig names the credentials for a cluster of the public operator.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterSecurityConfig struct {
	// adminCredentialsSecret names a Secret with username and password of the administrator.
	// +optional
	AdminCredentialsSecret corev1.LocalObjectReference `json:"adminCredentialsSecret,omitempty"`
	// operatorClientCert names a Secret with the admin certificate.
	// +optional
	OperatorClientCert *corev1.LocalObjectReference `json:"operatorClientCert,omitempty"`
	// operatorClientServerName is the name that the server's certificate must have.
	// +optional
	OperatorClientServerName string `json:"operatorClientServerName,omitempty"`
}

// ClusterHTTP describes the TLS of the REST API of the public operator's clusters.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterHTTP struct {
	// enabled reports whether the REST API uses TLS.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`
	// generate reports whether the operator makes the certificates.
	// +optional
	Generate bool `json:"generate,omitempty"`
	// secret names the Secret with the server's certificate.
	// +optional
	Secret corev1.LocalObjectReference `json:"secret,omitempty"`
	// caSecret names the Secret with the certificate authority of the server.
	// +optional
	CASecret corev1.LocalObjectReference `json:"caSecret,omitempty"`
}

// ClusterTLS describes the TLS certificates of a cluster of the public operator.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterTLS struct {
	// http describes the TLS of the REST API.
	// +optional
	HTTP *ClusterHTTP `json:"http,omitempty"`
}

// ClusterSecurity describes credentials and TLS.
//
// +kubebuilder:pruning:PreserveUnknownFields
type ClusterSecurity struct {
	// config names the credentials.
	// +optional
	Config *ClusterSecurityConfig `json:"config,omitempty"`
	// tls describes certificates.
	// +optional
	TLS *ClusterTLS `json:"tls,omitempty"`
}

// OpenSearchClusterSpec holds the fields that Entail reads of a cluster. The public operator's type has more fields.
//
// +kubebuilder:pruning:PreserveUnknownFields
type OpenSearchClusterSpec struct {
	// connection describes how to reach a cluster that no operator runs. To set it you need the verb connect on this
	// object.
	// +optional
	Connection *Connection `json:"connection,omitempty"`
	// general has the address of a cluster of the public operator.
	// +optional
	General ClusterGeneral `json:"general,omitempty"`
	// security has the credentials of a cluster of the public operator.
	// +optional
	Security *ClusterSecurity `json:"security,omitempty"`
}

// Running is the phase of a cluster of the public operator that answers requests.
const Running = "RUNNING"

// OpenSearchClusterStatus is the observed state of a cluster.
//
// +kubebuilder:pruning:PreserveUnknownFields
type OpenSearchClusterStatus struct {
	// phase is the phase that the public operator reports; RUNNING means that the cluster answers.
	// +optional
	Phase string `json:"phase,omitempty"`
	// conditions has Reachable: whether OpenSearch answers opensearch-sync, and if not, why.
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// OpenSearchCluster is an OpenSearch cluster, or describes how to reach one.
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

	// spec is the desired state.
	Spec OpenSearchClusterSpec `json:"spec,omitempty"`
	// status is the observed state.
	// +optional
	Status OpenSearchClusterStatus `json:"status,omitempty"`
}
