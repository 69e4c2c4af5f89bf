#!/usr/bin/env bash
# legacy-crds.sh writes deploy/crd-legacy: the kinds of opensearch.org in the group that the public operator had them in
# before. Clusters stay its own.
set -euo pipefail
cd "$(dirname "$0")/../deploy"

legacy=opensearch.opster.io
mkdir -p crd-legacy
rm -f crd-legacy/*
for file in crd/opensearch.org_*.yaml; do
	[[ $file != *_opensearchclusters.yaml ]] || continue
	sed -E "s/^(  name: [a-z]+)\.opensearch\.org\$/\1.$legacy/; s/^  group: opensearch\.org\$/  group: $legacy/" \
		"$file" >"crd-legacy/$legacy${file#crd/opensearch.org}"
done
