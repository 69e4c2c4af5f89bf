#!/usr/bin/env bash
# mutants.sh [I/N] puts bugs into the code, one at a time, and fails unless the tests find each.
# I/N selects the I-th of N slices of every list of bugs. It goes on after a bug that no test finds.
set -euo pipefail
cd "$(dirname "$0")/.."

slice=${1:-}
if [[ -n $slice && ! $slice =~ ^[1-9][0-9]*/[1-9][0-9]*$ ]]; then
	echo "usage: mutants.sh [I/N], such as mutants.sh 1/4" >&2
	exit 2
fi
export GOWORK=off GOFLAGS=-trimpath CGO_ENABLED=0 ENTAIL_BIN=$PWD/bin ENTAIL_SLICE=$slice
unset ENTAIL_SEED # A mutant must die of the seeds that CI uses.
failed=()

# tests_in FILE... returns a pattern for the names of the tests in the files.
tests_in() { echo "^($(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(t .*/\1/p' "$@" | paste -sd '|'))\$"; }

# select_bugs TEST ALL prints those bugs of chaos, one a line, that the slice selects, and writes all of
# them to ALL. The module of chaos cannot import services/internal/mutant, which selects all others.
select_bugs() {
	local i=${slice%/*} n=${slice#*/}
	(cd deploy/e2e/chaos && "$1" -test.v -test.run 'CodeAsItIs$') |
		sed -n 's/^ *--- PASS: [^ /]*CodeAsItIs\/\([^ ]*\) .*/\1/p' | sort >"$2"
	awk -v i="${i:-1}" -v n="${n:-1}" 'NR % n == i % n' "$2"
}

# chaos runs the campaigns that must find the bugs of whole services.
chaos() {
	local dir=$PWD/.tmp/mutants pattern
	mkdir -p "$dir"
	(cd deploy/e2e/chaos && go test -c -tags "e2e mutants" -o "$dir/chaos.test" .) &&
		select_bugs "$dir/chaos.test" "$dir/all" >"$dir/selected" || return 1
	pattern=$(sed 's/[^A-Za-z0-9_-]/\\&/g' "$dir/selected" | paste -sd '|')
	(cd deploy/e2e/chaos && "$dir/chaos.test" -test.v -test.timeout 2h -test.run "TestCampaignFindsPlantedBug/^($pattern)\$") |
		tee "$dir/log" || return 1
	local selected ran
	selected=$(wc -l <"$dir/selected") ran=$(grep -c '^    --- PASS' "$dir/log") || true
	if ((selected == 0 || ran != selected)); then
		echo "$selected bugs of chaos were selected, and $ran ran" >&2
		return 1
	fi
}

mapfile -t files < <(grep -rl --include='*_test.go' 'mutant\.KillAll(' services)
for package in $(printf '%s\n' "${files[@]}" | xargs -n 1 dirname | sort -u); do
	echo "mutants of $package"
	names=$(tests_in $(printf '%s\n' "${files[@]}" | grep -x "$package/[^/]*"))
	(cd "$package" && go test -count=1 -v -tags mutants -timeout 2h -run "$names" .) || failed+=("$package")
done
echo "bugs of chaos"
chaos || failed+=(deploy/e2e/chaos)
if ((${#failed[@]} > 0)); then
	echo "a bug was not found in: ${failed[*]}" >&2
	exit 1
fi
