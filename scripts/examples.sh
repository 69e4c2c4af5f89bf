#!/usr/bin/env bash
# examples.sh MODULE runs the Examples of a library as somebody else would who imports
# it: in a module outside the repository that requires the library and nothing else. So
# the library needs no sibling, no replace, no file, and no package that is internal.
set -euo pipefail
cd "$(dirname "$0")/.."

library=$PWD/$1
export GOWORK=off GOFLAGS=-mod=mod
path=$(cd "$library" && go list -m)
if (cd "$library" && go mod edit -json | grep -E '"Replace": \[|"Path": "github.com/entail-dev/') | grep -v "\"$path\""; then
	echo "$1/go.mod ties the library to this repository: others could not require it" >&2
	exit 1
fi

outside=$(mktemp -d)
trap 'rm -rf "$outside"' EXIT
(cd "$library" && find . -name conformance -prune -o -name example_test.go -print) | while read -r example; do
	mkdir -p "$outside/$(dirname "$example")"
	cp "$library/$example" "$outside/$example"
done
cd "$outside"
go mod init example.org/outside 2>/dev/null
go mod edit -require="$path@v0.0.0" -replace="$path=$library"
# The checkout has tests beside its Examples, and they have dependencies: these do not.
# Vet would look for what an Example is named for in the folder that it now stands in.
go test -vet=off ./... | grep -v '^go: downloading '
echo "the Examples of $1 run outside, with $(go list -m all | tail -n +3 | tr '\n' ' ')"
