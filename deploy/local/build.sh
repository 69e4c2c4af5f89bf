#!/usr/bin/env bash
# build.sh [PROGRAM...] puts kube-local, or those of it and of cmd/ that are named, into bin/ of
# the repository (or OUT). A binary is cached by the content that it is built from, so that
# only a change of this module (or of Go) pays for the compilation again.
set -euo pipefail
export LC_ALL=C GOWORK=off CGO_ENABLED=0

cd "$(dirname "${BASH_SOURCE[0]}")"
out=${OUT:-../../bin}

digest() {
  if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}

sources() {
  local folders=("./cmd/$program")
  [[ $program != kube-local ]] || folders=(. -path ./cmd -prune -o)
  { find "${folders[@]}" -type f -name '*.go' ! -name '*_test.go' -print; printf '%s\n' ./build.sh ./go.mod ./go.sum; } | sort
}

content_hash() {
  { go env GOVERSION GOOS GOARCH; sources | while IFS= read -r file; do digest "$file"; done; } | digest | cut -d' ' -f1
}

# Nobody ever sees a part of a binary: it gets its name when it is whole.
install_binary() {
  mkdir -p "$out"
  rm -f "$target.stamp"
  ln -f "$1" "$target" 2>/dev/null || { cp -f "$1" "$target.new" && mv -f "$target.new" "$target"; }
  echo "$hash" >"$target.stamp"
}

compile() {
  local version=$1 output=$2 minor package=.
  minor=$(cut -d. -f2 <<<"$version")
  [[ $program == kube-local ]] || package=./cmd/$program
  local component=k8s.io/component-base/version
  go build -trimpath -buildvcs=false -o "$output" -ldflags "-s -w
    -X $component.gitVersion=$version -X $component.gitMajor=1 -X $component.gitMinor=$minor
    -X k8s.io/client-go/pkg/version.gitVersion=$version" "$package"
}

build() {
  local target=$out/$program cache=${ENTAIL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/entail}/$program hash
  hash=$(content_hash)
  if [[ -x $target && -f $target.stamp && $(<"$target.stamp") == "$hash" ]]; then
    return
  fi
  local cached=$cache/$hash/$program version
  if [[ ! -x $cached ]]; then
    version=$(awk '$1 == "k8s.io/kubernetes" { print $2 }' go.mod)
    echo "building $program (Kubernetes $version): minutes the first time, seconds when Go has the packages" >&2
    mkdir -p "$cache/$hash"
    scratch=$(mktemp -d "$cache/.build-XXXXXX")
    trap 'rm -rf "$scratch"' EXIT
    compile "$version" "$scratch/$program"
    mv -f "$scratch/$program" "$cached"
    rm -rf "$scratch"
  fi
  touch "$cache/$hash"
  install_binary "$cached"
  # A binary that no build has asked for in 30 days is forgotten.
  find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
}

for program in "${@:-kube-local}"; do build; done
