#!/usr/bin/env bash
# install-tool.sh PACKAGE@VERSION installs a Go program into .tmp/bin. The program is built once for
# all checkouts: a cache keeps it for each version of Go.
set -euo pipefail
cd "$(dirname "$0")/.."

cache=${ENTAIL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/entail}/tools
built=$cache/$(go env GOVERSION)-${1//[^A-Za-z0-9.@-]/-}
if [[ ! -d $built ]]; then
	echo "installing $1"
	mkdir -p "$cache"
	scratch=$(mktemp -d "$cache/.build-XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	if [[ $1 == promtool@* ]]; then
		scripts/build-promtool.sh "${1#*@}" "$scratch"
	else
		GOBIN=$scratch go install "$1"
	fi
	mv -T "$scratch" "$built" 2>/dev/null || [[ -d $built ]] # Another checkout may have built it meanwhile.
fi
mkdir -p .tmp/bin
ln -sf "$built"/* .tmp/bin/
touch "$built"
# A tool that no checkout has asked for in 30 days is removed.
find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
