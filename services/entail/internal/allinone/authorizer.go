package allinone

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"sigs.k8s.io/yaml"

	"github.com/entail-dev/entail/deploy"
)

// localAuthorizer is the webhook that the local API server calls for requests that its RBAC does not allow. The listener is
// opened first, because the API server is configured with the address before the webhook serves.
type localAuthorizer struct {
	listener net.Listener
	dir      string
}

func (a *localAuthorizer) filePath(name string) string { return filepath.Join(a.dir, name) }

// writeAuthorizerFiles writes the files that the API server and the webhook read. It does nothing for an external
// cluster, which has its own authorizers.
func (m *localSystem) writeAuthorizerFiles() error {
	if m.cfg.HasExternalCluster() {
		return nil
	}
	listener, err := net.Listen("tcp", net.JoinHostPort(loopback, strconv.Itoa(m.cfg.Ports.Authorizer)))
	if err != nil {
		return fmt.Errorf("listening for the API server's questions (--authorizer-port): %w", err)
	}
	m.authorizer = &localAuthorizer{listener: listener, dir: filepath.Join(m.dir, "authorizer")}
	m.cfg.authorization = m.authorizer.filePath("authorization.yaml")
	if err := m.authorizer.writeFiles(); err != nil {
		return fmt.Errorf("preparing the authorizer: %w", err)
	}
	return nil
}

// writeFiles creates a new certificate, and the files with which the API server finds and trusts the webhook.
func (a *localAuthorizer) writeFiles() error {
	chain, key, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: loopback})
	if err != nil {
		return err
	}
	config, err := buildAuthorizationConfig(a.filePath("kubeconfig"))
	if err != nil {
		return err
	}
	kubeconfig, err := clientcmd.Write(clientcmdapi.Config{
		Clusters: map[string]*clientcmdapi.Cluster{"entail": {
			Server: "https://" + a.listener.Addr().String() + "/core/v1alpha/webhook", CertificateAuthorityData: chain,
		}},
		Contexts:       map[string]*clientcmdapi.Context{"entail": {Cluster: "entail"}},
		CurrentContext: "entail",
	})
	if err != nil {
		return err
	}
	errs := []error{os.MkdirAll(a.dir, 0o700)}
	for name, data := range map[string][]byte{"tls.crt": chain, "tls.key": key, "kubeconfig": kubeconfig, "authorization.yaml": config} {
		errs = append(errs, os.WriteFile(a.filePath(name), data, 0o600))
	}
	return errors.Join(errs...)
}

// buildAuthorizationConfig returns the shipped configuration without the Node authorizer: the local API server has no nodes.
func buildAuthorizationConfig(kubeconfig string) ([]byte, error) {
	shipped, err := fs.ReadFile(deploy.Files, "authorization/authorization.yaml")
	if err != nil {
		return nil, err
	}
	var config struct {
		APIVersion  string           `json:"apiVersion"`
		Kind        string           `json:"kind"`
		Authorizers []map[string]any `json:"authorizers"`
	}
	if err := yaml.UnmarshalStrict(shipped, &config); err != nil {
		return nil, err
	}
	config.Authorizers = slices.DeleteFunc(config.Authorizers, func(a map[string]any) bool { return a["type"] == "Node" })
	for _, a := range config.Authorizers {
		if webhook, ok := a["webhook"].(map[string]any); ok {
			webhook["connectionInfo"] = map[string]any{"type": "KubeConfigFile", "kubeConfigFile": kubeconfig}
		}
	}
	return yaml.Marshal(config)
}
