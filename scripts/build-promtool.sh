#!/usr/bin/env bash
# build-promtool.sh VERSION DIR builds DIR/promtool. `go install` refuses its module, which replaces
# others. Without service discovery other than DNS the build takes a minute.
set -euo pipefail
cd "$(dirname "$0")/.."

module=github.com/prometheus/prometheus
rm -rf .tmp/promtool
mkdir -p .tmp/promtool
cd .tmp/promtool
export GOWORK=off
go mod init example.org/promtool 2>/dev/null
go mod edit -require="$module@$1"
go build -mod=mod -tags remove_all_sd,enable_dns_sd -o "$2/promtool" "$module/cmd/promtool"
