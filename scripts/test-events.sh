#!/usr/bin/env bash
# test-events.sh SUITE[,SUITE...] MODULE... runs the tests of the modules (see
# test-module.sh), and prints their events as JSON. Two modules run at a time: tests on
# real servers wait as much as they work, and two cores and little memory are enough.
# Those with most tests go first, so that none is left to run alone at the end.
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
for module in "${together[@]}"; do
	echo "$(find "$module" -name '*_test.go' -exec cat {} + | wc -c) $module"
done | sort -rn | cut -d ' ' -f 2 | xargs -r -n 1 -P 2 scripts/test-module.sh "$1" || failed=1
for module in "${alone[@]}"; do
	scripts/test-module.sh "$1" "$module" || failed=1
done
exit $failed
