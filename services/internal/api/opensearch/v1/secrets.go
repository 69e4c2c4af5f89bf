package v1

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ClusterSecrets holds the names of the Secrets for the connection to a cluster. An empty name means that there is no
// such Secret.
//
// +kubebuilder:object:generate=false
type ClusterSecrets struct {
	// Connection is a Secret with all data of a connection.
	Connection string
	// Certificate holds a client certificate, Credentials a user name and a password, and Authority the certificate
	// authority of the server.
	Certificate, Credentials, Authority string
}

// ConnectionSecrets returns the Secrets for the connection to the cluster. They come from the annotation, or from
// spec.connection, or, if the cluster is running, from the fields of the public operator.
func (in *OpenSearchCluster) ConnectionSecrets() (s ClusterSecrets) {
	name := in.Annotations[ConnectionAnnotation]
	switch c := in.Spec.Connection; {
	case name != "":
		s.Connection = name
	case c != nil:
		s.Certificate, s.Credentials, s.Authority = nameOfRef(c.ClientCertificateSecret), nameOfRef(c.AdminCredentialsSecret), nameOfRef(c.CASecret)
	case in.Status.Phase == Running:
		return in.operatorSecrets()
	}
	return s
}

func (in *OpenSearchCluster) operatorSecrets() ClusterSecrets {
	s := ClusterSecrets{Authority: in.Name + "-ca"}
	var config ClusterSecurityConfig
	if security := in.Spec.Security; security != nil {
		if tls := security.TLS; tls != nil && tls.HTTP != nil && !tls.HTTP.Generate && tls.HTTP.CASecret.Name != "" {
			s.Authority = tls.HTTP.CASecret.Name
		}
		if security.Config != nil {
			config = *security.Config
		}
	}
	if s.Certificate = nameOfRef(config.OperatorClientCert); s.Certificate == "" {
		s.Credentials = cmp.Or(config.AdminCredentialsSecret.Name, in.Name+"-admin-password")
	}
	return s
}

func nameOfRef(ref *corev1.LocalObjectReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// SecretNames lists the Secrets that the cluster names. They are in its namespace.
func (in *OpenSearchCluster) SecretNames() []string {
	s := in.ConnectionSecrets()
	return uniqueNames(s.Connection, s.Certificate, s.Credentials, s.Authority)
}

// SecretNames lists the Secrets that the user names. They are in its namespace.
func (in *OpensearchUser) SecretNames() []string { return uniqueNames(in.Spec.PasswordFrom.Name) }

// uniqueNames returns the names that are not empty, sorted and without duplicates.
func uniqueNames(names ...string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// ResourcesWithSecrets lists the resources whose objects name Secrets.
func ResourcesWithSecrets() []string { return []string{Users, Clusters} }

// DecodeSecretNames lists the Secrets that an object names. resource is the resource of the object, and object its
// JSON.
func DecodeSecretNames(resource string, object []byte) ([]string, error) {
	var value interface{ SecretNames() []string }
	switch resource {
	case Users:
		value = &OpensearchUser{}
	case Clusters:
		value = &OpenSearchCluster{}
	default:
		return nil, nil
	}
	if err := json.Unmarshal(object, value); err != nil {
		return nil, fmt.Errorf("reading which Secrets an object of %s names: %w", resource, err)
	}
	return value.SecretNames(), nil
}
