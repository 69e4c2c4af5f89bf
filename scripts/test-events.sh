#!/usr/bin/env bash
# test-events.sh SUITE[,SUITE...] MODULE... runs the tests of the modules (see
# test-module.sh), and prints their events as JSON. Two modules run at a time: tests on
# real servers wait as much as they work, and two cores and little memory are enough.
# Nothing runs beside deploy/chaos: it looks at how long services take to come back.
set -uo pipefail
cd "$(dirname "$0")/.."

mkdir -p .tmp/test
rm -rf .tmp/test/printing
: >.tmp/test/seconds
together=() alone=() failed=0
for module in "${@:2}"; do
	if [[ $module == deploy/chaos ]]; then alone+=("$module"); else together+=("$module"); fi
done
printf '%s\n' "${together[@]}" | xargs -r -n 1 -P 2 scripts/test-module.sh "$1" || failed=1
for module in "${alone[@]}"; do
	scripts/test-module.sh "$1" "$module" || failed=1
done
exit $failed
