package credentials

import (
	"fmt"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/entail-dev/entail/deploy/local/internal/datadir"
)

// ClusterAccess is a server and the authority that its clients trust.
type ClusterAccess struct {
	Server    string
	Authority *CertificateAuthority
}

// WriteKubeconfig gives a user a client certificate in a kubeconfig that
// needs no other file.
func (c ClusterAccess) WriteKubeconfig(path, user string, groups []string) error {
	pair, err := c.Authority.IssueClientCertificate(user, groups)
	if err != nil {
		return err
	}
	const name = "kube-local"
	data, err := clientcmd.Write(api.Config{
		Clusters:       map[string]*api.Cluster{name: {Server: c.Server, CertificateAuthorityData: c.Authority.CertificatePEM()}},
		AuthInfos:      map[string]*api.AuthInfo{user: {ClientCertificateData: pair.Certificate, ClientKeyData: pair.Key}},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: user}},
		CurrentContext: name,
	})
	if err != nil {
		return fmt.Errorf("encoding the kubeconfig of %s: %w", user, err)
	}
	return datadir.WriteFile(path, data)
}
