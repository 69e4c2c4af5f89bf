#!/usr/bin/env bash
# node.sh check|up|down|run COMMAND...|inside COMMAND... is a Kubernetes cluster of one node, as root on
# Debian: kube-local, and containerd, the kubelet, scheduler, controllers, proxy and DNS beside it. All of it is
# in namespaces of its own (network, mounts, processes): when the first process there ends,
# however it does, the rest, its mounts, routes and rules end, too, and `down` removes files and cgroups. `run` starts
# a command in the network of the node, with KUBECONFIG; `inside`, where its containers are.
set -euo pipefail
script=$(realpath "$0")
cd "$(dirname "$script")/.."

root=$PWD
state=$root/.tmp/node
address=172.30.99.2 # Of a network that nothing else is in.
pods=10.88.99.0/24

fail() {
	echo "node.sh: $*" >&2
	exit 1
}

# first is the process that is the first one there, by its number here; nothing when the node is down.
first() {
	local parent
	[[ -e $state/pid ]] && parent=$(<"$state/pid") && grep -qs "$script" "/proc/$parent/cmdline" || return 0
	xargs <"/proc/$parent/task/$parent/children"
}

# check ends with a word where no node can be, and installs packages that are missing.
check() {
	((EUID == 0)) || fail "a node makes namespaces and mounts: run as root"
	unshare --net --mount --pid --fork ip link add eth0 type veth peer name nowhere 2>/dev/null || fail "no namespaces, or no links in them, may be made here"
	local missing=()
	for program in containerd:containerd runc:runc iptables:iptables conntrack:conntrack /usr/lib/cni/bridge:containernetworking-plugins; do
		command -v "${program%:*}" >/dev/null || missing+=("${program#*:}")
	done
	((${#missing[@]} == 0)) && return
	command -v apt-get >/dev/null || fail "missing: ${missing[*]}, and no apt-get to install it"
	echo "installing ${missing[*]}" >&2
	{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "${missing[@]}"; } >&2
}

# cgroups are the folders of the node's own group: of the one hierarchy of version 2, or of each of version 1.
cgroups() {
	[[ -e $state/cgroup ]] || return 0
	local hierarchy hierarchies=(/sys/fs/cgroup/*/)
	[[ ! -e /sys/fs/cgroup/cgroup.controllers ]] || hierarchies=(/sys/fs/cgroup/)
	for hierarchy in "${hierarchies[@]}"; do
		[[ ! -e ${hierarchy}cgroup.procs ]] || echo "$hierarchy$(<"$state/cgroup")"
	done
}

group() {
	echo "entail-node-$$" >"$state/cgroup"
	if [[ -e /sys/fs/cgroup/cgroup.controllers ]]; then
		sed 's/\(\w\+\)/+\1/g' /sys/fs/cgroup/cgroup.controllers >/sys/fs/cgroup/cgroup.subtree_control
	fi
	local folder file
	for folder in $(cgroups); do
		mkdir -p "$folder"
		for file in cpuset.cpus cpuset.mems; do # Version 1 leaves them empty.
			[[ ! -e $folder/$file || -e $folder/cgroup.controllers ]] || cat "${folder%/*}/$file" >"$folder/$file"
		done
	done
}

configure() {
	local pause volume
	pause=$(sed -n 's/^PAUSE_IMAGE=//p' .tmp/standins/env)
	mkdir -p "$state"/cni "$state"/volumes/{0..3}
	cat >"$state/containerd.toml" <<-END
		version = 2
		root = "$state/containerd"
		[plugins."io.containerd.grpc.v1.cri"]
		sandbox_image = "$pause"
		restrict_oom_score_adj = true # Root may lack the right to go below its own.
		[plugins."io.containerd.grpc.v1.cri".cni]
		bin_dir = "/usr/lib/cni"
		conf_dir = "$state/cni"
	END
	cat >"$state/cni/pods.conflist" <<-END
		{"cniVersion": "0.4.0", "name": "pods", "plugins": [{
		  "type": "bridge", "bridge": "pods", "isGateway": true, "hairpinMode": true,
		  "ipam": {"type": "host-local", "ranges": [[{"subnet": "$pods"}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
	END
	cat >"$state/kubelet.yaml" <<-END
		kind: KubeletConfiguration
		apiVersion: kubelet.config.k8s.io/v1beta1
		address: $address
		authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $state/kube/pki/ca.crt}}
		authorization: {mode: Webhook}
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		cgroupDriver: cgroupfs
		cgroupRoot: /$(<"$state/cgroup")
		failCgroupV1: false
		failSwapOn: false
		clusterDNS: [$address]
		clusterDomain: cluster.local
		resolvConf: ""
		evictionHard: {memory.available: 100Mi, nodefs.available: 200Mi, imagefs.available: 200Mi}
		imageGCHighThresholdPercent: 100
	END
	# Stateful sets find volumes without asking for a class.
	{
		cat <<-END
			apiVersion: storage.k8s.io/v1
			kind: StorageClass
			metadata: {name: local, annotations: {storageclass.kubernetes.io/is-default-class: "true"}}
			provisioner: kubernetes.io/no-provisioner
			volumeBindingMode: WaitForFirstConsumer
		END
		for volume in "$state"/volumes/*; do
			cat <<-END
				---
				apiVersion: v1
				kind: PersistentVolume
				metadata: {name: local-${volume##*/}}
				spec:
				  capacity: {storage: 10Gi}
				  accessModes: [ReadWriteOnce]
				  storageClassName: local
				  local: {path: $volume}
				  nodeAffinity:
				    required: {nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [node]}]}]}
			END
		done
	} >"$state/volumes.yaml"
}

# cover has the node write below a folder of its own where others are.
cover() {
	local folder
	for folder in "$@"; do
		mkdir -p "$folder" "$state/cover$folder"
		mount --bind "$state/cover$folder" "$folder"
	done
}

# settings shows the kubelet the kernel that it wants: it would change that of the machine.
settings() {
	local setting file
	for setting in vm.overcommit_memory=1 vm.panic_on_oom=0 kernel.panic=10 kernel.panic_on_oops=1 kernel.keys.root_maxkeys=1000000 kernel.keys.root_maxbytes=25000000; do
		file=$state/${setting%=*}
		echo "${setting#*=}" >"$file"
		mount --bind "$file" "/proc/sys/$(tr . / <<<"${setting%=*}")"
	done
}

network() {
	ip link set lo up
	ip link add eth0 type veth peer name nowhere
	ip link set nowhere up
	ip link set eth0 up
	ip address add $address/24 dev eth0
	ip route add default dev eth0 # Addresses of Services need a way before they are translated.
	echo 1 >/proc/sys/net/ipv4/ip_forward
	[[ ! -e /proc/sys/net/bridge ]] || echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables
}

start() {
	local name=$1
	shift
	"$@" >"/var/log/$name.log" 2>&1 </dev/null &
}

# init is the first process of the node.
init() {
	mount -t proc proc /proc
	mount -t tmpfs tmpfs /run
	cover /var/log /var/lib/kubelet /var/lib/cni
	settings
	network
	local bin=$root/bin kube=$state/kube
	start containerd containerd --config "$state/containerd.toml"
	start kube-local "$bin/kube-local" --data-dir "$kube" --bind-address $address --server-name $address --port 6443 --node node --unsafe-no-fsync
	until grep -qs kubeconfig /var/log/kube-local.log; do
		kill -0 $! || return 1
		sleep 0.1
	done
	# What kube-local does itself is left out.
	start controllers "$bin/kube-node" kube-controller-manager --kubeconfig="$kube/kube-controller-manager.kubeconfig" --leader-elect=false --secure-port=0 \
		--use-service-account-credentials --root-ca-file="$kube/pki/ca.crt" \
		--controllers='*,-garbage-collector-controller,-namespace-controller,-clusterrole-aggregation-controller,-serviceaccount-controller,-serviceaccount-token-controller'
	start scheduler "$bin/kube-node" kube-scheduler --kubeconfig="$kube/kube-scheduler.kubeconfig" --leader-elect=false --secure-port=0
	start proxy "$bin/kube-node" kube-proxy --kubeconfig="$kube/kube-proxy.kubeconfig" --hostname-override=node --proxy-mode=iptables --conntrack-max-per-core=0
	start dns "$bin/cluster-dns" --kubeconfig="$kube/kube-proxy.kubeconfig" --listen=$address:53 # It may read what the proxy may.
	start kubelet "$bin/kube-node" kubelet --kubeconfig="$kube/node.kubeconfig" --config="$state/kubelet.yaml" --hostname-override=node --node-ip=$address
	touch "$state/started"
	wait -n # None ends before its time.
}

up() {
	check
	local file
	for file in bin/kube-node .tmp/standins/env; do
		[[ -e $file ]] || fail "$file is missing: make kube-node, scripts/standins.sh pause"
	done
	[[ -z $(first) ]] || fail "it is up: node.sh down"
	down
	mkdir -p "$state"
	group
	configure
	setsid unshare --net --mount --pid --fork --kill-child=KILL "$script" init >"$state/log" 2>&1 </dev/null &
	echo $! >"$state/pid"
	local deadline=$((SECONDS + 120))
	until [[ -e $state/started ]] && run kubectl wait --for=condition=Ready --timeout=60s node/node >/dev/null 2>&1; do
		if [[ -z $(jobs -r) ]] || ((SECONDS > deadline)); then
			tail -n 5 "$state/log" "$state"/cover/var/log/*.log >&2 || true
			fail "the node does not start: its logs are in $state/cover/var/log"
		fi
		sleep 0.1
	done
	run kubectl apply -f "$state/volumes.yaml" >/dev/null
}

down() {
	local process folder
	process=$(first)
	if [[ -n $process ]]; then
		kill -KILL "$process"
		while [[ -e /proc/$process ]]; do sleep 0.1; done # It is the last to go.
	fi
	for folder in $(cgroups); do
		[[ ! -e $folder ]] || find "$folder" -depth -type d -exec rmdir {} +
	done
	rm -rf "$state"
	rmdir --ignore-fail-on-non-empty /var/lib/kubelet /var/lib/cni 2>/dev/null || true # Made to be covered.
}

run() {
	[[ -n $(first) ]] || fail "it is not up: node.sh up"
	PATH=$PATH:$root/bin KUBECONFIG=$state/kube/admin.kubeconfig nsenter --net="/proc/$(first)/ns/net" "$@"
}

case ${1:-} in
check | up | down) "$1" ;;
init) init ;;
run)
	shift
	run "$@"
	;;
inside)
	shift
	[[ -n $(first) ]] || fail "it is not up: node.sh up"
	exec nsenter --target "$(first)" --net --mount --pid "$@"
	;;
*)
	sed -n '2,/^set/s/^# \?//p' "$0" >&2
	exit 2
	;;
esac
