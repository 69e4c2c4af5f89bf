#!/usr/bin/env bash
# lint.sh MODULE... runs every linter of .golangci.yml on each module, with every build tag.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOWORK=off
root=$PWD
failed=0
for module in "$@"; do
	echo "linting module $module"
	# Kubernetes itself is compiled once: with the flags of deploy/local/build.sh.
	[[ $module != deploy/local ]] || export CGO_ENABLED=0 GOFLAGS=-trimpath
	(cd "$module" && "$root/.tmp/bin/golangci-lint" run --allow-parallel-runners --config "$root/.golangci.yml" ./...) || failed=1
done
exit $failed
