#!/usr/bin/env bash
# nightly.sh [PART [I/N]] runs what is too long for CI, part by part, and goes on after a part that
# fails. PART runs one part alone: mutants, chaos, race, rights, corpora, torture, histories, opensearch, node,
# release, restores, stress or bench. I/N selects a slice of mutants or stress; without it that of today runs. A part
# prints its seed, ends within an hour, and leaves no process. ENTAIL_SEED repeats a seed. The last
# lines state minutes and result of each part.
set -euo pipefail
cd "$(dirname "$0")/.."

parts=(mutants chaos race rights corpora torture histories opensearch node release restores stress bench)
minutes=60 # of one part
test_limit=$((minutes - 3))m # Go then prints where a test hangs.
# As many slices run within an hour on two cores.
mutant_slices=4 stress_slices=26
export GOWORK=off GOFLAGS=-trimpath CGO_ENABLED=0 RAPID_NOFAILFILE=1 ENTAIL_BIN=$PWD/bin

fail() {
	echo "nightly.sh: $*" >&2
	exit 2
}

##### Parts

# go_test FLAG... runs go test, and also fails if a package has no test of the names that -run selects.
go_test() {
	go test -count=1 "$@" 2>&1 | awk '{ print; fflush() } /\[no tests to run\]/ { empty = 1 } END { exit empty }'
}

# tests_in FILE... prints a pattern for the names of the tests in the files.
tests_in() {
	(($# > 0)) || fail "no file has such tests"
	echo "^($(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(t .*/\1/p' "$@" | paste -sd '|'))\$"
}

# packages_of MODULE FILE... prints the packages of the files that are in the module, relative to it.
packages_of() {
	local module=$1 file dir
	shift
	for file; do
		dir=${file%/*}
		while [[ ! -e $dir/go.mod ]]; do dir=${dir%/*}; done
		[[ $dir != "$module" ]] || dirname ".${file#"$dir"}"
	done | sort -u
}

# tagged TAG FILE... prints the files that are built with the tag.
tagged() { grep -lE "^//go:build (.*[ (])?$1\b" "${@:2}" || true; }

# slice_of_today N prints another one of N slices each day.
slice_of_today() { echo "$((10#$(date +%j) % $1 + 1))/$1"; }

part_mutants() { scripts/mutants.sh "${1:-$(slice_of_today $mutant_slices)}"; }

# The campaign goes on until the hour is over.
part_chaos() {
	local files pattern failed=0
	mapfile -t files < <(tagged nightly deploy/e2e/chaos/*_test.go)
	pattern=$(tests_in "${files[@]}")
	(cd deploy/e2e && go_test -timeout 30m -tags "e2e nightly" -run "$pattern" ./chaos) || failed=1
	bin/chaos -for $((minutes - 5 - SECONDS / 60))m -seed "$ENTAIL_SEED" || failed=1
	return $failed
}

# part_restores runs 200 histories in which NATS is restored from a backup, loses its tail, or is purged. The two
# campaigns wait most of the time, so both run at once.
part_restores() {
	local campaign campaigns=() half failed=0
	for half in 1 2; do
		bin/chaos -dir ".tmp/chaos/restores-$half" -seed "$((ENTAIL_SEED + half))" -nodes 1 -blows restore,lose-tail,purge -for 1m -rounds 100 &
		campaigns+=($!)
	done
	for campaign in "${campaigns[@]}"; do wait "$campaign" || failed=1; done
	return $failed
}

part_race() {
	cd services
	go run ./internal/cmd/run-tests -root .. -untimed -race -suites integration,e2e
}

part_rights() {
	local packages
	mapfile -t packages < <(packages_of services services/*/rights_integration_test.go)
	cd services
	go_test -p 2 -timeout $test_limit -tags "integration nightly" -run '^Test.*ReportsEachMissingRight$' "${packages[@]}"
}

# random_inputs matches tests whose inputs follow from ENTAIL_SEED or from a seed of rapid.
random_inputs='seeds\.(SeedRange|FirstSeed)|policytest\.(SeedRange|FirstSeed)|pgregory\.net/rapid'

# part_corpora asks every question of sample stores, then takes other seeds until half an hour is over, or a test fails.
# ENTAIL_SAMPLE_STORES may name a folder with more stores: a checkout of openfga/sample-stores.
part_corpora() {
	local first=$ENTAIL_SEED
	(cd services && go_test -tags integration -timeout $test_limit -run '^TestTreesOfSampleStoresHaveTheirAssertedAnswers$' ./tuple-sync/internal/decision) || return 1
	until ((SECONDS > 1800)); do
		corpora || return 1
		ENTAIL_SEED=$((ENTAIL_SEED + 1000000))
	done
	echo "passed with seeds $first to $((ENTAIL_SEED - 1000000)), each 1000000 after the one before"
}

# corpora runs the tests without servers whose inputs are random.
corpora() {
	local module tags files packages failed=0
	export RAPID_SEED=$ENTAIL_SEED RAPID_CHECKS=1000
	echo "ENTAIL_SEED=$ENTAIL_SEED"
	mapfile -t files < <(grep -rlE --include='*_test.go' "$random_inputs" services)
	for module in services/policy services services/policy/conformance; do
		tags=integration # The policy language needs no server for its largest corpora.
		[[ $module != services ]] || tags=
		mapfile -t packages < <(packages_of "$module" "${files[@]}")
		(cd "$module" && go_test -tags "$tags" -timeout $test_limit "${packages[@]}") || failed=1
	done
	return $failed
}

part_torture() {
	local files packages pattern failed=0
	mapfile -t files < <(grep -rlE --include='*_test.go' '^//go:build .*\bintegration\b' services)
	mapfile -t files < <({ printf '%s\n' "${files[@]}" | grep torture; grep -lE "$random_inputs" "${files[@]}"; } | grep -v "$histories" | sort -u)
	mapfile -t packages < <(packages_of services "${files[@]}")
	pattern=$(tests_in "${files[@]}")
	cd services
	RAPID_SEED=$ENTAIL_SEED ENTAIL_ROUNDS=${ENTAIL_ROUNDS:-40} go_test -p 2 -timeout $test_limit -tags integration -run "$pattern" "${packages[@]}" || failed=1
	cd ..
	mapfile -t files < <(tagged nightly services/*/*_integration_test.go) # These wait for minutes.
	mapfile -t packages < <(packages_of services "${files[@]}")
	pattern=$(tests_in "${files[@]}")
	cd services
	go_test -timeout $test_limit -tags "integration nightly" -run "$pattern" "${packages[@]}" || failed=1
	return $failed
}

# histories matches the file of the test on servers whose histories have a part of their own.
histories=/histories_integration_test.go

# Both tests run at once: 10000 histories without servers, and 40 rounds of 5 histories on servers.
part_histories() {
	local pure failed=0
	cd services
	ENTAIL_ROUNDS=10000 go_test -timeout $test_limit -run '^TestDecideKeepsTheRulesOfModelsInRandomHistories$' ./store-sync/store/plan &
	pure=$!
	ENTAIL_ROUNDS=40 go_test -timeout $test_limit -tags integration -run '^TestStoreSyncFollowsModelRulesInRandomHistories$' ./store-sync || failed=1
	wait $pure || failed=1
	return $failed
}

# part_opensearch runs 300 histories, 30 of them with restarts and outages.
part_opensearch() {
	cd services
	ENTAIL_ROUNDS=${ENTAIL_ROUNDS:-30} go_test -timeout $test_limit -tags integration -run '^TestOpenSearchEqualsDeclarationsInRandomHistories$' ./opensearch-sync
}

part_node() {
	((EUID == 0)) || fail "a node needs root"
	scripts/node-test.sh nightly
}

part_release() {
	local files pattern
	mapfile -t files < <(tagged nightly deploy/e2e/*_test.go | xargs -r grep -LE '^//go:build .*\bcompose\b')
	pattern=$(tests_in "${files[@]}")
	cd deploy/e2e
	go_test -v -timeout $test_limit -tags "e2e nightly" -run "$pattern" .
}

# stress_packages prints the packages with tests on servers, those with the most tests first. Those of the
# policy language embed the engines, which take long to compile with the race detector.
stress_packages() {
	grep -rlE --include='*_test.go' --exclude-dir=policy '^//go:build .*\bintegration\b' services | xargs -n 1 dirname | sort -u |
		while read -r package; do echo "$(cat "$package"/*_test.go | wc -c) $package"; done | sort -k 1,1nr -k 2 | cut -d ' ' -f 2
}

# part_stress runs each package twenty times in all slices together, in blocks of five runs.
part_stress() {
	local slice=${1:-$(slice_of_today $stress_slices)} blocks block count package failed=0
	mapfile -t blocks < <(stress_packages | sed 'p;p;p' | awk -v i="${slice%/*}" -v n="${slice#*/}" 'NR % n == i % n' | uniq -c)
	((${#blocks[@]} > 0)) || fail "slice $slice has no package; use fewer slices"
	unset ENTAIL_SEED # A run differs from the next by its timing alone.
	for block in "${blocks[@]}"; do
		read -r count package <<<"$block"
		scripts/stress.sh "$package" $((5 * count)) || failed=1
	done
	return $failed
}

part_bench() { scripts/bench.sh; }

##### All parts

# run PART [I/N] runs one part as a process group of its own, and ends what is left of the group.
run() {
	local began=$SECONDS outcome=0 result=ok
	echo "== $1: ENTAIL_SEED=$ENTAIL_SEED"
	set -m # A background job is a process group.
	timeout --kill-after=2m ${minutes}m "scripts/${0##*/}" inside "$@" </dev/null &
	group=$!
	set +m
	wait $group || outcome=$?
	kill -KILL -- "-$group" 2>/dev/null || true
	group=''
	case $outcome in
	0) ;;
	124 | 137) result="failed: took more than $minutes minutes" ;;
	*) result="failed: exit $outcome" ;;
	esac
	((outcome == 0)) || failed=1
	table+=("$(printf '%5s min  %-8s %s' "$(((SECONDS - began + 30) / 60))" "$1" "$result")")
}

# stop ends the part that runs, when a signal ends this script.
stop() {
	if [[ -n $group ]]; then
		kill -- "-$group" 2>/dev/null || true
		wait "$group" || true
		kill -KILL -- "-$group" 2>/dev/null || true
	fi
	exit "$1"
}

if [[ ${1:-} == inside ]]; then
	shift
	"part_$1" "${2:-}"
	exit
fi
part=${1:-} slice=${2:-} group='' table=() failed=0
[[ -z $part || " ${parts[*]} " == *" $part "* ]] || fail "unknown part $part; use one of: ${parts[*]}"
if [[ -n $slice ]]; then
	[[ $part == mutants || $part == stress ]] || fail "only mutants and stress have slices"
	[[ $slice =~ ^([1-9][0-9]*)/([1-9][0-9]*)$ ]] && ((BASH_REMATCH[1] <= BASH_REMATCH[2])) || fail "slice $slice: want I/N, such as 1/4"
fi
export ENTAIL_SEED=${ENTAIL_SEED:-$SRANDOM}
trap 'stop 130' INT
trap 'stop 143' TERM
if [[ -n $part ]]; then
	run "$part" "$slice"
else
	for part in "${parts[@]}"; do run "$part"; done
fi
printf '%s\n' "${table[@]}"
exit $failed
