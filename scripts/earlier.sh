#!/usr/bin/env bash
# earlier.sh puts an entail of the past into bin/earlier, beside this kube-local, for the
# test that gives its state to the entail of today. It is that of the newest release
# before this commit; until there is one, of the first commit that could uninstall. It is
# built once, of what Git has: a clone without that history builds today's twice.
set -euo pipefail
cd "$(dirname "$0")/.."

commit=$(git describe --tags --abbrev=0 --match 'v*' HEAD^ 2>/dev/null ||
	git log --diff-filter=A --format=%H -- services/entail/internal/command/uninstall.go | tail -n 1)
commit=$(git rev-parse --verify "$commit^{commit}")
cache=${ENTAIL_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/entail}/earlier
built=$cache/$commit-$(go env GOOS)-$(go env GOARCH)
if [[ ! -x $built/entail ]]; then
	mkdir -p "$cache"
	scratch=$(mktemp -d "$cache/.build-XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
	mkdir "$scratch/out"
	git archive "$commit" | tar -x -C "$scratch"
	program=(services ./entail)
	[[ -e $scratch/services/go.mod ]] || program=(services/entail .) # Each service once was a module.
	VERSION=earlier COMMIT=$commit MODIFIED='' OUT=$scratch/out "$scratch/scripts/build.sh" "${program[@]}"
	rm -rf "$built"
	mv "$scratch/out" "$built"
fi
touch "$built"
mkdir -p bin/earlier
# A program looks for kube-local beside itself, and not beside a link to it.
cmp -s "$built/entail" bin/earlier/entail || cp -f --remove-destination "$built/entail" bin/earlier/entail
ln -sfn ../kube-local bin/earlier/kube-local
# What no build has asked for in 30 days is forgotten.
find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
