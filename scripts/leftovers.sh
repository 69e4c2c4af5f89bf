#!/usr/bin/env bash
# leftovers.sh fails when Git holds what editors, patch and rapid leave behind.
set -euo pipefail
cd "$(dirname "$0")/.."

left=$(git ls-files '*.orig' '*.rej' '*.fail')
if [[ -n $left ]]; then
	printf 'left over by a tool:\n%s\nremove it: git rm --cached FILE\n' "$left" >&2
	exit 1
fi
