#!/usr/bin/env bash
# engine.sh up|down|run COMMAND... is Docker where there is none, as root on Debian: engine,
# compose and buildx of its packages, unpacked and not installed, in a network namespace
# of its own, so that neither the machine's packages nor its rules of forwarding change.
# `run` starts a command where it reaches the engine and the ports that it publishes;
# with an engine of the machine's, that is right here. ENTAIL_ENGINE names it: one of
# another name runs beside, and has images and volumes of its own.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(docker.io docker-cli docker-buildx docker-compose containerd)
suite=trixie # Compose and buildx are not in the release before.
home=${ENTAIL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/entail}/engine
name=${ENTAIL_ENGINE:-entail-engine}
state=/run/$name
namespace=$name

mine() { [[ -S $state/docker.sock ]]; }

given() { ! mine && docker version >/dev/null 2>&1; }

fetch() {
	[[ -x $home/$suite/usr/sbin/dockerd ]] && return
	echo "fetching packages of the engine" >&2
	local scratch
	mkdir -p "$home"
	scratch=$(mktemp -d "$home/.fetch-XXXXXX")
	mkdir -p "$scratch"/{parts,lists/partial,cache/archives/partial,deb,root}
	# Where the machine has its packages from, there are those of the other suite.
	cat /etc/apt/sources.list.d/debian.sources | awk -v suite=$suite '
		/^URIs:/ && !uri { uri = $0 } /^Signed-By:/ && !key { key = $0 }
		END { print "Types: deb\n" uri "\nSuites: " suite "\nComponents: main\n" key }' >"$scratch/parts/suite.sources"
	local apt=(apt-get -qq -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$scratch/parts"
		-o Dir::State::lists="$scratch/lists" -o Dir::Cache="$scratch/cache" -o APT::Sandbox::User=root)
	"${apt[@]}" update
	(cd "$scratch/deb" && "${apt[@]}" download "${packages[@]}")
	for package in "$scratch"/deb/*.deb; do dpkg -x "$package" "$scratch/root"; done
	rm -rf "${home:?}/$suite"
	mv "$scratch/root" "$home/$suite"
	rm -rf "$scratch"
}

environment() {
	export PATH=$home/$suite/usr/bin:$home/$suite/usr/sbin:$PATH DOCKER_HOST=unix://$state/docker.sock DOCKER_CONFIG=$state/config
}

up() {
	if mine || given; then return; fi
	((EUID == 0)) || { echo "no Docker engine answers; run as root to have one from Debian's packages" >&2; exit 1; }
	for program in apt-get dpkg nsenter ip; do
		command -v $program >/dev/null || { echo "no Docker engine answers, and without $program none can be started: install Docker" >&2; exit 1; }
	done
	# The engine calls both by name.
	if ! command -v iptables >/dev/null || ! command -v runc >/dev/null; then
		{ apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends iptables runc; } >&2
	fi
	fetch
	environment
	mkdir -p "$state/config/cli-plugins"
	ln -sf "$home/$suite"/usr/libexec/docker/cli-plugins/* "$state/config/cli-plugins/"
	ip netns add $namespace
	nsenter --net=/run/netns/$namespace ip link set lo up
	setsid nsenter --net=/run/netns/$namespace dockerd --data-root "$home/$name" --exec-root "$state/exec" \
		--pidfile "$state/docker.pid" --host "$DOCKER_HOST" --storage-driver overlay2 >"$state/log" 2>&1 </dev/null &
	for _ in {1..120}; do
		if docker version >/dev/null 2>&1; then return; fi
		sleep 0.25
	done
	tail -20 "$state/log" >&2
	echo "the engine does not start: its log is $state/log" >&2
	exit 1
}

down() {
	if [[ -e $state/docker.pid ]]; then
		if mine; then # What earlier builds made, and nothing names any more.
			environment
			docker image prune --force >/dev/null 2>&1 || true
			docker builder prune --force --keep-storage 2gb >/dev/null 2>&1 || true
		fi
		local pid
		pid=$(<"$state/docker.pid")
		kill "$pid" 2>/dev/null || true
		while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
	fi
	if ip netns list 2>/dev/null | grep -qw "^$namespace"; then ip netns delete $namespace; fi
	rm -rf "$state"
}

case ${1:-} in
up) up ;;
down) down ;;
run)
	shift
	up
	if mine; then
		environment
		exec nsenter --net=/run/netns/$namespace "$@"
	fi
	exec "$@"
	;;
*)
	sed -n '2,/^set/s/^# \?//p' "$0" >&2
	exit 2
	;;
esac
