#!/usr/bin/env bash
# clean-state.sh DIR removes what `entail up` holds in DIR, unless it runs.
set -euo pipefail
cd "$(dirname "$0")/.."

if [[ -e $1/pid ]] && kill -0 "$(<"$1/pid")" 2>/dev/null; then
	echo "entail up runs on $1 (process $(<"$1/pid")): stop it first" >&2
	exit 1
fi
rm -rf "$1"
echo "removed $1"
