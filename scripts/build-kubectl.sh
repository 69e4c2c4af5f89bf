#!/usr/bin/env bash
# build-kubectl.sh builds bin/kubectl from the Kubernetes release that kube-local is
# made of. Its own copy of go.mod takes the few requirements that kube-local lacks.
set -euo pipefail
cd "$(dirname "$0")/.."

root=$PWD
mkdir -p bin .tmp/kubectl
cp deploy/local/go.mod deploy/local/go.sum .tmp/kubectl/
version=$(sed -n 's|^.*k8s.io/kubernetes \(v[0-9.]*\)$|\1|p' deploy/local/go.mod)
package=k8s.io/component-base/version
echo "building bin/kubectl $version (some minutes the first time)"
cd deploy/local
# The flags of deploy/local/build.sh, so that what is compiled already is not compiled again.
GOWORK=off CGO_ENABLED=0 go build -mod=mod -modfile="$root/.tmp/kubectl/go.mod" -trimpath -buildvcs=false \
	-ldflags "-s -w -X $package.gitVersion=$version -X $package.gitMajor=1 -X $package.gitMinor=$(cut -d. -f2 <<<"$version")" \
	-o "$root/bin/kubectl" k8s.io/kubernetes/cmd/kubectl
