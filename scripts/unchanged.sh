#!/usr/bin/env bash
# unchanged.sh COMMAND... runs a command and fails when it leaves any file of the
# repository changed, added or removed. Work that is not committed yet may lie about.
set -euo pipefail
cd "$(dirname "$0")/.."

# Snapshots are trees of a scratch index and object store: .git is only read.
scratch=$PWD/.tmp/snapshot
rm -rf "$scratch"
mkdir -p "$scratch/objects"
objects=$(git rev-parse --path-format=absolute --git-path objects)
scratch_git() {
	GIT_INDEX_FILE=$scratch/index GIT_OBJECT_DIRECTORY=$scratch/objects \
		GIT_ALTERNATE_OBJECT_DIRECTORIES=$objects git "$@"
}
snapshot() {
	scratch_git add --all
	scratch_git write-tree
}

before=$(snapshot)
"$@"
changed=$(scratch_git diff --name-only "$before" "$(snapshot)")
if [[ -n $changed ]]; then
	printf 'changed by %s:\n%s\ncommit the result of it\n' "$*" "$changed" >&2
	exit 1
fi
