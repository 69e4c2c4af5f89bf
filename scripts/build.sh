#!/usr/bin/env bash
# build.sh MODULE PACKAGE builds one binary into bin/, named after its service. A
# build of this repository's record ignores go.work: what a go.mod lacks must show.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
out=$root/bin/$(basename "$1")
[[ -e $out ]] || echo "building bin/$(basename "$1") (some minutes the first time: every dependency is compiled)"
mkdir -p bin
cd "$1"
GOWORK=off go build -trimpath -o "$out" "$2"
