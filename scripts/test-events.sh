#!/usr/bin/env bash
# test-events.sh SUITE[,SUITE...] MODULE... runs the tests of the modules one after
# another, so that two cores and little memory are enough, and prints their events as
# JSON. Suites: unit, integration (real servers), e2e (black box). The seconds that each
# module takes go to .tmp/test/seconds.
set -uo pipefail
cd "$(dirname "$0")/.."

suites=,$1,
shift
# A test at random names what failed; it leaves no file in the tree.
export GOWORK=off ENTAIL_BIN=$PWD/bin RAPID_NOFAILFILE=1
race=(-race) suite=() failed=0
[[ $(go env CGO_ENABLED) == 1 ]] || race=()
[[ $suites != *,integration,* ]] || suite=(-count=1 -tags integration)

# run MODULE [FLAG...]
run() {
	(cd "$1" && go test -json -p 2 -timeout 30m "${@:2}" 2> >(grep -v '^go: downloading ' >&2)) || failed=1
}

# slow MODULE runs the tests that leave themselves out under the race detector: those of very many worlds.
slow() {
	local dir files names
	while read -r dir; do
		files=$(grep -l '^//go:build .*!race' "$1/$dir"/*_test.go)
		# shellcheck disable=SC2086 # There may be several.
		names=$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(t .*/\1/p' $files | paste -sd '|')
		CGO_ENABLED=0 GOFLAGS=-trimpath run "$1" "${suite[@]}" -run "^($names)\$" "./$dir"
	done < <(cd "$1" && find . -mindepth 1 -type d -exec test -e '{}/go.mod' \; -prune -o \
		-name '*_test.go' -exec grep -l '^//go:build .*!race' '{}' + | xargs -r dirname | sort -u)
}

mkdir -p .tmp/test
: >.tmp/test/seconds
for module in "$@"; do
	begun=$SECONDS
	case $module in
	deploy/e2e)
		[[ $suites != *,e2e,* ]] || run "$module" -count=1 -tags e2e ./...
		;;
	deploy/chaos) # Everything there but its e2e tests needs no server.
		tags=()
		[[ $suites != *,e2e,* ]] || tags=(-count=1 -tags e2e)
		run "$module" "${race[@]}" "${tags[@]}" ./...
		;;
	deploy/local) # Kubernetes is compiled once: with the flags of its build.sh, without the race detector.
		CGO_ENABLED=0 GOFLAGS=-trimpath run "$module" "${suite[@]}" ./...
		;;
	*)
		run "$module" "${race[@]}" "${suite[@]}" ./...
		[[ -z ${race[*]} ]] || slow "$module"
		;;
	esac
	echo "$((SECONDS - begun)) $module" >>.tmp/test/seconds
done
exit $failed
