#!/usr/bin/env bash
# fetch-proto.sh MODULE@VERSION takes validate.proto out of its Go module, so that
# the module proxy is the only source that a build needs.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(GOWORK=off go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",*$/\1/p')
rm -rf .tmp/proto
mkdir -p .tmp/proto/buf/validate
cp "$dir/proto/protovalidate/buf/validate/validate.proto" .tmp/proto/buf/validate/
chmod -R u+w .tmp/proto
