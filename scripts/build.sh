#!/usr/bin/env bash
# build.sh MODULE PACKAGE [NAME] builds one binary into bin/, named after its service. A
# build of this repository's record ignores go.work: what a go.mod lacks must show.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
name=${3:-$(basename "$1")}
out=$root/bin/$name
[[ -e $out ]] || echo "building bin/$name (some minutes the first time: every dependency is compiled)"
mkdir -p bin
cd "$1"
GOWORK=off go build -trimpath -o "$out" "$2"
