#!/usr/bin/env bash
# build.sh MODULE PACKAGE [NAME] builds one program into bin/ (or OUT). NAME defaults to the
# last element of PACKAGE. The build ignores go.work, so a requirement that go.mod lacks is
# an error. Without a Git repository, VERSION and COMMIT name the source. SYMBOLS=none
# leaves out the symbols for debuggers.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
name=${3:-$(basename "$2")}
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
