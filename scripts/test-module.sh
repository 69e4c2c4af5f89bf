#!/usr/bin/env bash
# test-module.sh SUITE[,SUITE...] MODULE runs the tests of one module, and prints their
# events in one piece when they have ended: another module's may be printed at the same
# time. Suites: unit, integration (real servers), e2e (black box). The seconds that it
# takes go to .tmp/test/seconds.
set -uo pipefail
cd "$(dirname "$0")/.."

suites=,$1, module=$2
# A test at random names what failed; it leaves no file in the tree.
export GOWORK=off ENTAIL_BIN=$PWD/bin RAPID_NOFAILFILE=1
# The detector looks at what is ours, and not at each access of the SQLite in OpenFGA, which is C put into Go: that
# would be a quarter of all the work.
race=(-race '-gcflags=modernc.org/...=-race=false -d=checkptr=0') suite=() failed=0
[[ $(go env CGO_ENABLED) == 1 ]] || race=()
[[ $suites != *,integration,* ]] || suite=(-count=1 -tags integration)
events=$PWD/.tmp/test/${module//\//-}.json
: >"$events"

# run [FLAG...]
run() {
	(cd "$module" && go test -json -p 2 -timeout 30m "$@" 2> >(grep -v '^go: downloading ' >&2)) >>"$events" || failed=1
}

# slow runs the tests that leave themselves out under the race detector: those of very many worlds.
slow() {
	local dir files names
	while read -r dir; do
		files=$(grep -l '^//go:build .*!race' "$module/$dir"/*_test.go)
		# shellcheck disable=SC2086 # There may be several.
		names=$(sed -n 's/^func \(Test[A-Za-z0-9_]*\)(t .*/\1/p' $files | paste -sd '|')
		CGO_ENABLED=0 GOFLAGS=-trimpath run "${suite[@]}" -run "^($names)\$" "./$dir"
	done < <(cd "$module" && find . -mindepth 1 -type d -exec test -e '{}/go.mod' \; -prune -o \
		-name '*_test.go' -exec grep -l '^//go:build .*!race' '{}' + | xargs -r dirname | sort -u)
}

case $module in
deploy/e2e)
	[[ $suites != *,e2e,* ]] || run -count=1 -tags e2e ./...
	;;
deploy/chaos) # Everything there but its e2e tests needs no server.
	tags=()
	[[ $suites != *,e2e,* ]] || tags=(-count=1 -tags e2e)
	run "${race[@]}" "${tags[@]}" ./...
	;;
deploy/local) # Kubernetes is compiled once: with the flags of its build.sh, without the race detector.
	CGO_ENABLED=0 GOFLAGS=-trimpath run "${suite[@]}" ./...
	;;
*)
	run "${race[@]}" "${suite[@]}" ./...
	[[ -z ${race[*]} ]] || slow
	;;
esac

until mkdir .tmp/test/printing 2>/dev/null; do sleep 0.1; done
cat "$events"
echo "$SECONDS $module" >>.tmp/test/seconds
rmdir .tmp/test/printing
exit $failed
