#!/usr/bin/env bash
# bench.sh runs every benchmark of the services on real servers, one package at a time, and
# writes the results to .tmp/bench.txt.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOWORK=off ENTAIL_BIN=$PWD/bin
mkdir -p .tmp
{
	git log -1 --format='commit: %H'
	for module in services services/policy; do
		(cd "$module" && go test -p 1 -timeout 60m -tags integration -run '^$' -bench . -benchmem ./...)
	done
} | grep -v 'no test files' | tee .tmp/bench.txt
