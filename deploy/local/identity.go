package main

import (
	"crypto/ecdsa"
	"net"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/deploy/local/internal/credentials"
	"github.com/entail-dev/entail/deploy/local/internal/datadir"
	"github.com/entail-dev/entail/deploy/local/internal/options"
)

// identity is how the server and its clients know each other.
type identity struct {
	cluster    credentials.Cluster
	signingKey *ecdsa.PrivateKey
	pki        string
	kubeconfig string
	listener   net.Listener
}

// newIdentity makes all certificates and keys and writes the kubeconfigs.
func newIdentity(dir *datadir.Dir, opts options.Options, listener net.Listener) (*identity, error) {
	i := &identity{
		pki:        dir.Path("pki"),
		kubeconfig: dir.Path(options.AdminName + ".kubeconfig"),
		listener:   listener,
	}
	authority, err := credentials.LoadAuthority(i.pki, time.Now())
	if err != nil {
		return nil, err
	}
	if i.signingKey, err = credentials.LoadSigningKey(i.serviceAccountKey()); err != nil {
		return nil, err
	}
	server, err := authority.Server(
		[]string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"},
		[]net.IP{opts.BindAddress, net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	)
	if err != nil {
		return nil, err
	}
	if err := server.Write(filepath.Join(i.pki, "server")); err != nil {
		return nil, err
	}
	i.cluster = credentials.Cluster{Server: "https://" + listener.Addr().String(), Authority: authority}
	if err := i.cluster.WriteKubeconfig(i.kubeconfig, options.AdminName, []string{"system:masters"}); err != nil {
		return nil, err
	}
	for _, user := range opts.Users {
		if err := i.cluster.WriteKubeconfig(dir.Path(user.File+".kubeconfig"), user.Name, user.Groups); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// client is the configuration of this process's own clients, unthrottled.
func (i *identity) client() (*rest.Config, error) {
	pair, err := i.cluster.Authority.Client("system:kube-controller-manager", []string{"system:masters"})
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: i.cluster.Server,
		QPS:  -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   i.cluster.Authority.Certificate(),
			CertData: pair.Certificate,
			KeyData:  pair.Key,
		},
	}, nil
}

func (i *identity) authorityFile() string     { return filepath.Join(i.pki, "ca.crt") }
func (i *identity) serviceAccountKey() string { return filepath.Join(i.pki, "service-account.key") }
