#!/usr/bin/env bash
# node-test.sh [nightly] installs deploy/overlays on a Kubernetes node, with the images of this checkout and
# stand-ins for those of others, and tests what they give: the overlay dev, and nightly also ha. It needs root: see node.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

tags="e2e compose"
case ${1:-} in
'') ;;
nightly) tags+=" nightly" ;;
*)
	sed -n '2,/^set/s/^# \?//p' "$0" >&2
	exit 2
	;;
esac

export ENTAIL_VERSION=test
scripts/node.sh check
command -v kubectl >/dev/null || [[ -x bin/kubectl ]] || scripts/build-kubectl.sh
TAG=$ENTAIL_VERSION scripts/images.sh
scripts/standins.sh nats openfga postgres pause
(cd deploy/e2e && CGO_ENABLED=0 GOWORK=off go test -c -tags "$tags" -o ../../.tmp/compose.test .)

clean() {
	scripts/node.sh down
	scripts/engine.sh down
}
trap clean EXIT
scripts/node.sh up
set -a
. .tmp/standins/env
set +a
images=("$NATS_IMAGE" "$OPENFGA_IMAGE" "$POSTGRES_IMAGE" "$PAUSE_IMAGE" entail/entail:$ENTAIL_VERSION)
for workload in deploy/base/*/workload.yaml; do images+=("entail/$(basename "$(dirname "$workload")"):$ENTAIL_VERSION"); done
scripts/engine.sh run docker save "${images[@]}" | scripts/node.sh inside ctr -n k8s.io images import - >/dev/null
# The second overlay needs a node that the first has left.
scripts/node.sh run bash -c 'cd deploy/e2e && exec ../../.tmp/compose.test -test.v -test.failfast -test.timeout 10m -test.run "OverlayRunsOnNode\$"'
