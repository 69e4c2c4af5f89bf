#!/usr/bin/env bash
# standins.sh [NAME...] makes images that stand in for those of others in docker-compose.yaml and overlays, all
# or those that are named, where no registry of images can be reached: the same programs, from Debian's packages and Go's
# modules, with the entry points and flags that the file relies on. Their names are their
# own (standin/…), so nobody takes them for the real ones; .tmp/standins/env names them for
# docker compose --env-file.
set -euo pipefail
cd "$(dirname "$0")/.."

command -v apt-get >/dev/null || { echo "stand-ins are made of Debian's packages, and there is no apt-get" >&2; exit 1; }
dir=$PWD/.tmp/standins
mkdir -p "$dir/lists/partial"

updated=0

# What an image is made of is its tag: what is there already is not made again.
digest() { { cat scripts/standins.sh deploy/docker/standins/*; sha256sum "$@"; } | sha256sum | cut -c1-12; }
known() { scripts/engine.sh run docker image inspect "$1" >/dev/null 2>&1; }

build() { # build NAME DIR: what is in DIR becomes the image, by deploy/docker/standins/NAME.Dockerfile.
	scripts/engine.sh run docker buildx build --quiet --file "deploy/docker/standins/$1.Dockerfile" --tag "$image" "$2" >/dev/null
	echo "$image"
}

# unpack ROOT PACKAGE...: packages of Debian with all that they need, unpacked and not installed.
unpack() {
	local root=$1 scratch
	shift
	scratch=$(mktemp -d)
	mkdir -p "$scratch/archives/partial" "$root"
	: >"$scratch/status"
	local apt=(apt-get -qq -o Dir::State::status="$scratch/status" -o Dir::State::lists="$dir/lists" -o Dir::Cache="$scratch"
		-o APT::Sandbox::User=root -o APT::Install-Recommends=false)
	((updated)) || "${apt[@]}" update # The machine's own lists may be old, or not there.
	updated=1
	"${apt[@]}" install --yes --download-only "$@" >/dev/null
	for package in "$scratch"/archives/*.deb; do dpkg -x "$package" "$root"; done
	rm -rf "$scratch"
}

nats() {
	image=standin/nats:$(digest bin/nats-server)
	known "$image" && return
	local root=$dir/nats
	rm -rf "$root" && mkdir -p "$root/bin" "$root/tmp"
	unpack "$root/packages" busybox-static
	cp "$root/packages/bin/busybox" bin/nats-server "$root/bin/"
	rm -rf "$root/packages"
	build nats "$root"
}

openfga() {
	image=standin/openfga:$(digest bin/openfga services/internal/cmd/grpc-health-probe/main.go)
	known "$image" && return
	local root=$dir/openfga
	rm -rf "$root" && mkdir -p "$root/bin"
	cp bin/openfga "$root/bin/"
	OUT=$root/bin scripts/build.sh services ./internal/cmd/grpc-health-probe grpc_health_probe
	build openfga "$root"
}

postgres() {
	image=standin/postgres:$(digest deploy/docker/standins/postgres.sh)
	known "$image" && return
	local root=$dir/postgres
	rm -rf "$root"
	unpack "$root" postgresql-15 busybox-static
	mkdir -p "$root/usr/local/bin" "$root/var/lib/postgresql/data" "$root/var/run/postgresql" "$root/tmp"
	chmod 1777 "$root/var/lib/postgresql/data" "$root/var/run/postgresql"
	ln -s busybox "$root/bin/sh"
	cp deploy/docker/standins/postgres.sh "$root/usr/local/bin/docker-entrypoint.sh"
	# docker-compose.yaml runs it as the one, overlays as the other.
	printf 'postgres:x:%s::/var/lib/postgresql:/bin/sh\n' 65532:65532 999:999 >"$root/etc/passwd"
	build postgres "$root"
}

prometheus() {
	image=standin/prometheus:$(digest)
	known "$image" && return
	local root=$dir/prometheus
	rm -rf "$root" && mkdir -p "$root/data"
	unpack "$root/root" prometheus
	rm -rf "$root"/root/usr/share "$root"/root/etc/prometheus
	build prometheus "$root"
}

# pause is what keeps the namespaces of a pod.
pause() {
	image=standin/pause:$(digest)
	known "$image" && return
	local root=$dir/pause
	rm -rf "$root"
	unpack "$root" busybox-static
	build pause "$root"
}

opensearch() {
	image=standin/opensearch:$(digest deploy/docker/standins/opensearch.sh scripts/opensearch.sha256)
	known "$image" && return
	local root=$dir/opensearch
	rm -rf "$root"
	unpack "$root/root" openjdk-17-jre-headless busybox-static curl
	mkdir -p "$root/root/tmp" "$root/root/usr/local/bin" "$root/home"
	chmod 1777 "$root/root/tmp"
	ln -s busybox "$root/root/bin/sh"
	cp deploy/docker/standins/opensearch.sh "$root/root/usr/local/bin/docker-entrypoint.sh"
	cp -a bin/opensearch/. "$root/home/"
	rm "$root/home/classes.jsa"
	mkdir -p "$root/home/data"
	build opensearch "$root"
}

echo "# Made by scripts/standins.sh." >"$dir/env.new"
(($#)) || set -- nats openfga postgres prometheus pause opensearch
for name in "$@"; do
	$name
	echo "${name^^}_IMAGE=$image" >>"$dir/env.new"
done
mv "$dir/env.new" "$dir/env"
