#!/usr/bin/env bash
# test.sh SUITE[,SUITE...] MODULE... runs tests (see test-events.sh) and ends with one
# line that counts them. TEST_FORMAT is a format of gotestsum.
set -euo pipefail
cd "$(dirname "$0")/.."

[[ $(go env CGO_ENABLED) == 1 ]] || echo "no C compiler: the race detector is off" >&2
mkdir -p .tmp/test
exec .tmp/bin/gotestsum --format "${TEST_FORMAT:-pkgname}" --format-hide-empty-pkg \
	--junitfile .tmp/test/junit.xml --raw-command -- scripts/test-events.sh "$@"
