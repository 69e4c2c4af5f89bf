#!/usr/bin/env bash
# breaking.sh [REF] fails when the protobuf contracts break those of REF: the branch
# main, or on main itself the commit before. Before the first commit nothing can break.
set -euo pipefail
cd "$(dirname "$0")/.."

ref=${1:-}
for candidate in main origin/main; do
	[[ -n $ref ]] || ref=$(git rev-parse --quiet --verify "$candidate^{commit}" || true)
done
if [[ -n $ref && $ref == "$(git rev-parse HEAD)" ]]; then
	ref=$(git rev-parse --quiet --verify 'HEAD^{commit}^' || true)
fi
if [[ -z $ref || -z $(git ls-tree "$ref" proto) ]]; then
	echo "no earlier contracts: nothing to compare with"
	exit 0
fi
rm -rf .tmp/baseline
mkdir -p .tmp/baseline/.tmp
git archive "$ref" proto buf.yaml | tar -x -C .tmp/baseline
cp -r .tmp/proto .tmp/baseline/.tmp/
.tmp/bin/buf breaking --against .tmp/baseline
