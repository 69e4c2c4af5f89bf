#!/usr/bin/env bash
# compose-test.sh runs docker-compose.yaml, with the images of this checkout and stand-ins for
# those of others, and tests what it gives. It needs Docker, or root: see engine.sh.
set -euo pipefail
cd "$(dirname "$0")/.."

export ENTAIL_VERSION=test
TAG=$ENTAIL_VERSION scripts/images.sh
scripts/standins.sh
(cd deploy/e2e && CGO_ENABLED=0 GOWORK=off go test -c -tags "e2e compose" -o ../../.tmp/compose.test .)

# Its containers and volumes are beside those that this machine may have of it.
export COMPOSE_PROJECT_NAME=entail-test

compose() { scripts/engine.sh run docker compose --env-file .tmp/standins/env "$@" >/dev/null 2>&1; }
down() { compose --profile '*' down --volumes --timeout 5; }
clean() {
	down
	scripts/engine.sh down
}
trap clean EXIT
down # What an earlier run left.
scripts/engine.sh run bash -c 'cd deploy/e2e && exec ../../.tmp/compose.test -test.v -test.timeout 15m -test.run "InContainers\$"'
