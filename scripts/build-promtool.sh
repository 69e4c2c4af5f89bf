#!/usr/bin/env bash
# build-promtool.sh VERSION builds .tmp/bin/promtool, which `go install` refuses: its module
# replaces others. Without what it would find servers with, but by DNS, it takes a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
module=github.com/prometheus/prometheus
rm -rf .tmp/promtool
mkdir -p .tmp/bin .tmp/promtool
cd .tmp/promtool
export GOWORK=off
go mod init example.org/promtool 2>/dev/null
go mod edit -require="$module@$1"
go build -mod=mod -tags remove_all_sd,enable_dns_sd -o "$root/.tmp/bin/promtool" "$module/cmd/promtool"
