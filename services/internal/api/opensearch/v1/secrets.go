package v1

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// ClusterSecrets are the names of Secrets by which a cluster is reached; an empty one is none.
//
// +kubebuilder:object:generate=false
type ClusterSecrets struct {
	// Connection holds all that there is to say.
	Connection string
	// Certificate is a client's, Credentials are a name and a password, Authority is who vouches for the server.
	Certificate, Credentials, Authority string
}

// Secrets are those by which the cluster is reached: by its annotation, by its connection, or, once it runs, as the public operator
// names them.
func (in *OpenSearchCluster) Secrets() (s ClusterSecrets) {
	name := in.Annotations[ConnectionAnnotation]
	switch c := in.Spec.Connection; {
	case name != "":
		s.Connection = name
	case c != nil:
		s.Certificate, s.Credentials, s.Authority = nameOf(c.ClientCertificateSecret), nameOf(c.AdminCredentialsSecret), nameOf(c.CASecret)
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
	if s.Certificate = nameOf(config.OperatorClientCert); s.Certificate == "" {
		s.Credentials = cmp.Or(config.AdminCredentialsSecret.Name, in.Name+"-admin-password")
	}
	return s
}

func nameOf(ref *corev1.LocalObjectReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// SecretNames are the Secrets of its namespace that the cluster names.
func (in *OpenSearchCluster) SecretNames() []string {
	s := in.Secrets()
	return named(s.Connection, s.Certificate, s.Credentials, s.Authority)
}

// SecretNames are the Secrets of its namespace that the user names.
func (in *OpensearchUser) SecretNames() []string { return named(in.Spec.PasswordFrom.Name) }

// named are names, each once.
func named(names ...string) []string {
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(name string) bool { return name == "" })
}

// NameSecrets lists the resources whose objects name Secrets.
func NameSecrets() []string { return []string{Users, Clusters} }

// SecretNamesOf reads which Secrets of its namespace an object of such a resource names, as JSON.
func SecretNamesOf(resource string, object []byte) ([]string, error) {
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
