#!/usr/bin/env bash
# images.sh [TARGET...] builds the images of deploy/docker/Dockerfile as entail/TARGET:TAG,
# all of them or those that are named, from what the Go of this machine compiles; with
# COMPILE=in-docker, from what Docker does, which takes minutes and gives the same images.
# CACHE=none has each layer made anew.
set -euo pipefail
cd "$(dirname "$0")/.."

VERSION=${VERSION:-$(git describe --tags --match 'v*' 2>/dev/null || echo devel)}
COMMIT=${COMMIT:-$(git rev-parse HEAD 2>/dev/null || true)}
# The time of the commit: the same commit gives the same images.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export VERSION COMMIT SOURCE_DATE_EPOCH MODIFIED=
tag=${TAG:-$VERSION}

targets=("$@")
if ((${#targets[@]} == 0)); then
	# Whatever has an entry point is an image.
	mapfile -t targets < <(awk '/^FROM/ { name = $4 } /^ENTRYPOINT/ { print name }' deploy/docker/Dockerfile)
fi

contexts=(--build-arg GO_IMAGE) cache=()
[[ ${CACHE:-} != none ]] || cache=(--no-cache)
if [[ ${COMPILE:-} != in-docker ]]; then
	programs=() local=()
	for target in "${targets[@]}"; do
		if [[ $target == kube-local ]]; then local=(kube-local); else programs+=("$target"); fi
	done
	contexts=(--build-arg GO_IMAGE=scratch) # Nothing is compiled there.
	mkdir -p .tmp/images
	if ((${#programs[@]})); then
		scripts/image-files.sh .tmp/images/build/out "${programs[@]}"
		contexts+=(--build-context build=.tmp/images/build)
	fi
	if ((${#local[@]})); then
		scripts/image-files.sh .tmp/images/build-kube-local/out kube-local
		contexts+=(--build-context build-kube-local=.tmp/images/build-kube-local)
		((${#programs[@]})) || contexts+=(--build-context build=.tmp/images/build-kube-local)
	fi
fi

for target in "${targets[@]}"; do
	scripts/engine.sh run docker buildx build --quiet --file deploy/docker/Dockerfile --target "$target" \
		--tag "entail/$target:$tag" "${contexts[@]}" "${cache[@]}" \
		--build-arg GOPROXY --build-arg GOFLAGS --build-arg VERSION --build-arg COMMIT --build-arg SOURCE_DATE_EPOCH \
		--label org.opencontainers.image.version="$VERSION" --label org.opencontainers.image.revision="$COMMIT" \
		--label org.opencontainers.image.title="entail $target" . >/dev/null
	echo "entail/$target:$tag $(scripts/engine.sh run docker image inspect --format '{{.Id}}' "entail/$target:$tag")"
done
