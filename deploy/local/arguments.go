package main

import (
	"fmt"
	"net"
	"path/filepath"

	"github.com/entail-dev/entail/deploy/local/internal/options"
)

// Without nodes no pod ever runs. What serves nodes, volumes, scheduling and quotas is
// then left out: each API group costs memory, each admission plugin every write.
const (
	idleAdmission = "LimitRanger,ServiceAccount,TaintNodesByCondition,PodSecurity,Priority," +
		"DefaultTolerationSeconds,DefaultStorageClass,StorageObjectInUseProtection,PersistentVolumeClaimResize," +
		"RuntimeClass,DefaultIngressClass,PodTopologyLabels,ResourceQuota"
	idleAPIs = "resource.k8s.io/v1=false,node.k8s.io/v1=false,storage.k8s.io/v1=false," +
		"scheduling.k8s.io/v1=false,flowcontrol.apiserver.k8s.io/v1=false"
)

// apiServerArgs are the flags of the API server. Requests are not limited,
// neither by number nor by priority: there is one user, who measures.
func (i *clusterIdentity) apiServerArgs(etcd string, opts options.Options) []string {
	address, _ := i.listener.Addr().(*net.TCPAddr) // It listens on TCP.
	args := []string{
		"--etcd-servers=" + etcd,
		"--bind-address=" + opts.BindAddress.String(),
		fmt.Sprintf("--secure-port=%d", address.Port),
		"--service-cluster-ip-range=" + serviceIPRange(opts.BindAddress),
		"--client-ca-file=" + i.authorityFile(),
		"--tls-cert-file=" + filepath.Join(i.pki, "server.crt"),
		"--tls-private-key-file=" + filepath.Join(i.pki, "server.key"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + i.serviceAccountKeyFile(),
		"--service-account-signing-key-file=" + i.serviceAccountKeyFile(),
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=0",
		"--max-mutating-requests-inflight=0",
		"--shutdown-watch-termination-grace-period=1s",
	}
	if !opts.BindAddress.IsUnspecified() { // Else the API server finds an address of the machine.
		args = append(args, "--advertise-address="+opts.BindAddress.String())
	}
	mode := "RBAC"
	if opts.Nodes {
		mode = "Node,RBAC"
		args = append(args,
			"--enable-admission-plugins=NodeRestriction",
			"--kubelet-client-certificate="+i.kubeletClientFile()+".crt",
			"--kubelet-client-key="+i.kubeletClientFile()+".key",
			"--kubelet-preferred-address-types=InternalIP", // A name of a node is in no DNS.
		)
	} else {
		args = append(args,
			"--endpoint-reconciler-type=none",
			"--disable-admission-plugins="+idleAdmission,
			"--runtime-config="+idleAPIs,
		)
	}
	if opts.AuthorizationConfig != "" {
		args = append(args, "--authorization-config="+opts.AuthorizationConfig)
	} else {
		args = append(args, "--authorization-mode="+mode)
	}
	return options.MergeArguments(args, opts.APIServerArgs)
}

// apiServerServiceIP is the first of the addresses of Services, which is the API server's own.
func apiServerServiceIP(address net.IP) net.IP {
	if address.To4() == nil {
		return net.ParseIP("fd00:10::1")
	}
	return net.IPv4(10, 0, 0, 1)
}

// serviceIPRange is where Services get their addresses, of the same family as
// the address of the server.
func serviceIPRange(address net.IP) string {
	if address.To4() == nil {
		return "fd00:10::/112"
	}
	return "10.0.0.0/24"
}
