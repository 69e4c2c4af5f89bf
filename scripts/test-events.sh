#!/usr/bin/env bash
# test-events.sh SUITE[,SUITE...] MODULE... runs the tests of the modules (see
# test-module.sh), and prints their events as JSON. Two modules run at a time: tests on
# real servers wait as much as they work, and two cores and little memory are enough.
set -uo pipefail
cd "$(dirname "$0")/.."

mkdir -p .tmp/test
rm -rf .tmp/test/printing
: >.tmp/test/seconds
printf '%s\n' "${@:2}" | xargs -n 1 -P 2 scripts/test-module.sh "$1"
