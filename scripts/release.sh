#!/usr/bin/env bash
# release.sh VERSION [PLATFORM...] makes what a release publishes, in .tmp/release (or OUT): for each
# platform (os/arch) an archive with one program, entail, and one with kube-local, which
# `entail up` starts; what is in them, and checksums of it all. The same commit gives the
# same bytes. kube-local takes minutes for each platform; KUBE_LOCAL=none leaves it out.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

version=${1:?which version? release.sh v1.2.3}
shift
platforms=("$@")
((${#platforms[@]})) || platforms=(linux/amd64 linux/arm64 darwin/amd64 darwin/arm64)
[[ $version =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || { echo "$version is no version: use v1.2.3 or v1.2.3-rc.1" >&2; exit 2; }

root=$PWD
out=${OUT:-$root/.tmp/release}
epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
rm -rf "$out"
mkdir -p "$out"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
OUT=$scratch scripts/build.sh deploy ./docker/sbom

# pack NAME PROGRAM: the archive NAME.tar.gz has all in a folder of that name.
pack() {
	local name=$1 program=$2
	mkdir -p "$scratch/$name"
	mv "$scratch/$program" "$scratch/$name/"
	cp LICENSE README.md CHANGELOG.md "$scratch/$name/"
	"$scratch/sbom" "$scratch/$name/$program" >"$out/$name.cdx.json"
	tar --create --directory "$scratch" --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
		--mode=u=rwX,go=rX "$name" | gzip --no-name >"$out/$name.tar.gz"
	rm -rf "${scratch:?}/$name"
}

for platform in "${platforms[@]}"; do
	export GOOS=${platform%/*} GOARCH=${platform#*/}
	suffix=${version}_${GOOS}_$GOARCH
	echo "building for $platform"
	VERSION=$version SYMBOLS=none OUT=$scratch scripts/build.sh services ./entail
	pack "entail_$suffix" entail
	if [[ ${KUBE_LOCAL:-} != none ]]; then
		OUT=$scratch deploy/local/build.sh
		rm "$scratch/kube-local.stamp"
		pack "kube-local_$suffix" kube-local
	fi
done
cd "$out"
sha256sum -- * >SHA256SUMS
cat SHA256SUMS
