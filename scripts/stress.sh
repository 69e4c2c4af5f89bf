#!/usr/bin/env bash
# stress.sh PACKAGE N runs the tests of one package N times with the race detector, beside two
# processes that keep the CPU busy. PACKAGE is a directory such as services/tuple-sync. After each
# run it prints which tests failed; their output stays in .tmp/stress. It fails if a run failed.
set -euo pipefail
cd "$(dirname "$0")/.."

package=${1:-} runs=${2:-}
package=${package%/}
if [[ ! -d $package || ! $runs =~ ^[1-9][0-9]*$ ]]; then
	echo "usage: stress.sh PACKAGE N, such as stress.sh services/tuple-sync 5" >&2
	exit 2
fi
export GOWORK=off GOFLAGS=-trimpath ENTAIL_BIN=$PWD/bin RAPID_NOFAILFILE=1
logs=$PWD/.tmp/stress/${package//\//-}
scratch=$(mktemp -d)
load=() group=''

clean() {
	end_group TERM
	((${#load[@]} == 0)) || kill "${load[@]}" 2>/dev/null || true
	wait
	rm -rf "$scratch"
}

# end_group SIGNAL ends the test and what it started.
end_group() {
	[[ -z $group ]] || kill "-$1" -- "-$group" 2>/dev/null || true
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# busy uses one CPU until this script ends, however it ends.
busy() {
	while kill -0 $$ 2>/dev/null; do
		for ((i = 0; i < 100000; i++)); do :; done
	done
}

# test_once LOG runs the tests once. The test is a background job, so that a signal ends the wait, and
# with set -m a process group of its own.
test_once() {
	local outcome=0
	set -m
	(cd "$package" && exec "$scratch/test" -test.paniconexit0 -test.timeout=30m) >"$1" 2>&1 </dev/null &
	set +m
	group=$!
	wait "$group" || outcome=$?
	end_group KILL
	group=''
	((outcome == 0)) && ! grep -q 'no tests to run' "$1"
}

# why LOG prints the tests that failed, or the end of the output if it names none.
why() {
	grep -oE '^ *--- FAIL: [^ ]+|^WARNING: DATA RACE|^panic: .*|^fatal error: .*' "$1" | sort -u || tail -n 20 "$1"
}

# The SQLite within OpenFGA is C translated to Go: checking it takes most of the time and finds nothing of ours.
(cd "$package" && CGO_ENABLED=1 go test -c -race '-gcflags=modernc.org/...=-race=false -d=checkptr=0' -tags integration -o "$scratch/test" .)
if [[ ! -e $scratch/test ]]; then
	echo "$package has no tests" >&2
	exit 1
fi
rm -rf "$logs"
mkdir -p "$logs"
for _ in 1 2; do
	busy &
	load+=($!)
done
failed=0
for ((run = 1; run <= runs; run++)); do
	began=$SECONDS
	if test_once "$logs/$run.log"; then
		echo "$package run $run: pass ($((SECONDS - began)) s)"
		rm "$logs/$run.log"
	else
		failed=$((failed + 1))
		echo "$package run $run: fail ($((SECONDS - began)) s), see $logs/$run.log"
		why "$logs/$run.log" | sed 's/^ */    /'
	fi
done
echo "$package: $runs runs, $failed failed"
((failed == 0))
