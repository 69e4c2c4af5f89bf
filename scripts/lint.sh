#!/usr/bin/env bash
# lint.sh MODULE... runs every linter of .golangci.yml on each module, with every build tag.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOWORK=off CGO_ENABLED=0 GOFLAGS=-trimpath
root=$PWD
failed=0
for module in "$@"; do
	echo "linting module $module"
	(cd "$module" && "$root/.tmp/bin/golangci-lint" run --allow-parallel-runners --config "$root/.golangci.yml" ./...) || failed=1
done
exit $failed
