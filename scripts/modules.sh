#!/usr/bin/env bash
# modules.sh MODULE... checks that each go.mod is tidy without go.work, and that the modules
# require the same versions of shared dependencies. The linters compile and vet each module.
set -euo pipefail
cd "$(dirname "$0")/.."

export GOWORK=off
failed=0
for module in "$@"; do
	echo "checking module $module"
	(cd "$module" && go mod tidy -diff) || failed=1
done

# deploy/local is the Kubernetes release it runs, so it may differ.
shared='k8s\.io/(api|apimachinery|client-go|apiextensions-apiserver)|github\.com/nats-io/nats\.go|connectrpc\.com/connect|go\.opentelemetry\.io/otel(/sdk|/trace|/metric)?|google\.golang\.org/(grpc|protobuf)'
differing=$(for module in "$@"; do
	[[ $module == deploy/local ]] || sed -nE "s#^(require)?[[:space:]]*(($shared) v[^ ]+).*#\2#p" "$module/go.mod"
done | sort -u | awk '{ versions[$1] = versions[$1] " " $2; n[$1]++ } END { for (m in n) if (n[m] > 1) print m ":" versions[m] }')
if [[ -n $differing ]]; then
	printf 'modules require different versions of\n%s\ntake the newest in every go.mod\n' "$differing" >&2
	failed=1
fi
exit $failed
