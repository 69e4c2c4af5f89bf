#!/usr/bin/env bash
# Puts kube-local into bin/ of the repository (or OUT). The binary is cached by the
# content that it is built from, so that only a change of this module (or of
# Go) pays for the compilation again.
set -euo pipefail
export LC_ALL=C GOWORK=off CGO_ENABLED=0

cd "$(dirname "${BASH_SOURCE[0]}")"
target=${OUT:-../../bin}/kube-local
stamp=$target.stamp
cache=${ENTAIL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/entail}/kube-local

digest() {
  if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}

sources() {
  find . -type f \( -name '*.go' ! -name '*_test.go' -o -name go.mod -o -name go.sum -o -name build.sh \) | sort
}

content_hash() {
  { go env GOVERSION GOOS GOARCH; sources | while IFS= read -r file; do digest "$file"; done; } | digest | cut -d' ' -f1
}

# Nobody ever sees a part of a binary: it gets its name when it is whole.
install_binary() {
  mkdir -p "$(dirname "$target")"
  rm -f "$stamp"
  ln -f "$1" "$target" 2>/dev/null || { cp -f "$1" "$target.new" && mv -f "$target.new" "$target"; }
  echo "$hash" >"$stamp"
}

compile() {
  local version=$1 output=$2 minor
  minor=$(cut -d. -f2 <<<"$version")
  local component=k8s.io/component-base/version
  go build -trimpath -buildvcs=false -o "$output" -ldflags "-s -w
    -X $component.gitVersion=$version -X $component.gitMajor=1 -X $component.gitMinor=$minor
    -X k8s.io/client-go/pkg/version.gitVersion=$version" .
}

hash=$(content_hash)
if [[ -x $target && -f $stamp && $(<"$stamp") == "$hash" ]]; then
  exit 0
fi

cached=$cache/$hash/kube-local
if [[ ! -x $cached ]]; then
  version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' go.mod)
  echo "building kube-local (Kubernetes $version): minutes the first time, seconds when Go has the packages" >&2
  mkdir -p "$cache/$hash"
  scratch=$(mktemp -d "$cache/.build-XXXXXX")
  trap 'rm -rf "$scratch"' EXIT
  compile "$version" "$scratch/kube-local"
  mv -f "$scratch/kube-local" "$cached"
fi
touch "$cache/$hash"
install_binary "$cached"
# A binary that no build has asked for in 30 days is forgotten.
find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
