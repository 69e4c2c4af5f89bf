package main

import (
	"cmp"
	"crypto/ecdsa"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"k8s.io/client-go/rest"

	"github.com/entail-dev/entail/deploy/local/internal/credentials"
	"github.com/entail-dev/entail/deploy/local/internal/datadir"
	"github.com/entail-dev/entail/deploy/local/internal/options"
)

// clusterIdentity is how the server and its clients know each other.
type clusterIdentity struct {
	// cluster is the server as its users call it, and local as this process does.
	cluster    credentials.ClusterAccess
	local      string
	signingKey *ecdsa.PrivateKey
	pki        string
	kubeconfig string
	listener   net.Listener
}

// newClusterIdentity makes all certificates and keys and writes the kubeconfigs.
func newClusterIdentity(dir *datadir.Dir, opts options.Options, listener net.Listener) (*clusterIdentity, error) {
	i := &clusterIdentity{
		pki:        dir.Path("pki"),
		kubeconfig: dir.Path(options.AdminName + ".kubeconfig"),
		listener:   listener,
	}
	authority, err := credentials.LoadAuthority(i.pki, time.Now())
	if err != nil {
		return nil, err
	}
	if i.signingKey, err = credentials.LoadSigningKey(i.serviceAccountKeyFile()); err != nil {
		return nil, err
	}
	server, err := authority.IssueServerCertificate(serverNames(opts))
	if err != nil {
		return nil, err
	}
	if err := server.WriteFiles(filepath.Join(i.pki, "server")); err != nil {
		return nil, err
	}
	i.cluster.Authority = authority
	i.local, i.cluster.Server = serverURLs(opts, listener)
	if err := i.cluster.WriteKubeconfig(i.kubeconfig, options.AdminName, []string{"system:masters"}); err != nil {
		return nil, err
	}
	if opts.Nodes {
		pair, err := authority.IssueClientCertificate("kube-apiserver", []string{"system:masters"})
		if err != nil {
			return nil, err
		}
		if err := pair.WriteFiles(i.kubeletClientFile()); err != nil {
			return nil, err
		}
	}
	for _, user := range opts.Users {
		if err := i.cluster.WriteKubeconfig(dir.Path(user.File+".kubeconfig"), user.Name, user.Groups); err != nil {
			return nil, err
		}
	}
	return i, nil
}

// serverNames are the names and addresses by which the server is called: in this machine, by pods, and by others.
func serverNames(opts options.Options) (hosts []string, addresses []net.IP) {
	hosts = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}
	addresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, apiServerServiceIP(opts.BindAddress)}
	if !opts.BindAddress.IsUnspecified() {
		addresses = append(addresses, opts.BindAddress)
	}
	if address := net.ParseIP(opts.ServerName); address != nil {
		addresses = append(addresses, address)
	} else if opts.ServerName != "" {
		hosts = append(hosts, opts.ServerName)
	}
	return hosts, addresses
}

// serverURLs are where this process reaches the server, and where its users do.
func serverURLs(opts options.Options, listener net.Listener) (local, users string) {
	address, _ := listener.Addr().(*net.TCPAddr) // It listens on TCP.
	host, port := opts.BindAddress.String(), strconv.Itoa(address.Port)
	if opts.BindAddress.IsUnspecified() {
		host = "localhost"
	}
	local = "https://" + net.JoinHostPort(host, port)
	return local, "https://" + net.JoinHostPort(cmp.Or(opts.ServerName, host), port)
}

// clientConfig is the configuration of this process's own clients, unthrottled.
func (i *clusterIdentity) clientConfig() (*rest.Config, error) {
	pair, err := i.cluster.Authority.IssueClientCertificate("system:kube-controller-manager", []string{"system:masters"})
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host: i.local,
		QPS:  -1,
		TLSClientConfig: rest.TLSClientConfig{
			CAData:   i.cluster.Authority.CertificatePEM(),
			CertData: pair.Certificate,
			KeyData:  pair.Key,
		},
	}, nil
}

func (i *clusterIdentity) authorityFile() string { return filepath.Join(i.pki, "ca.crt") }
func (i *clusterIdentity) serviceAccountKeyFile() string {
	return filepath.Join(i.pki, "service-account.key")
}

// kubeletClientFile is as whom the API server calls kubelets, for logs and the like.
func (i *clusterIdentity) kubeletClientFile() string { return filepath.Join(i.pki, "kubelet-client") }
