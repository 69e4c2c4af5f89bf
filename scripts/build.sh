#!/usr/bin/env bash
# build.sh MODULE PACKAGE [NAME] builds one binary into bin/ (or OUT), named after its
# service. A build of this repository's record ignores go.work: what a go.mod lacks must
# show. Without a repository at hand, VERSION and COMMIT say what it is built from. With
# SYMBOLS=none it is smaller, and no debugger reads it.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
name=${3:-$(basename "$1")}
out=${OUT:-$root/bin}/$name
[[ -e $out ]] || echo "building $name (some minutes the first time: every dependency is compiled)"
mkdir -p "$(dirname "$out")"

version=${VERSION:-$(git describe --tags --match 'v*' 2>/dev/null || echo devel)}
commit=${COMMIT:-$(git rev-parse HEAD 2>/dev/null || true)}
modified=${MODIFIED-$(git status --porcelain --untracked-files=no 2>/dev/null | head -c 1 || true)}
package=github.com/entail-dev/entail/services/internal/version
flags="${SYMBOLS:+-s -w} -X $package.number=$version -X $package.revision=$commit -X $package.modified=${modified:+true}"
[[ $2 == .* ]] || flags= # A program of others is the same at each commit.

# Without cgo, images need no C library, and have what is compiled here.
cd "$1"
GOWORK=off CGO_ENABLED=0 go build -trimpath -buildvcs=false -o "$out" -ldflags "$flags" "$2"
