#!/usr/bin/env bash
# image-files.sh DIR [PROGRAM...] makes DIR/PROGRAM, what is in the image of a program, for
# all programs or those that are named. The Dockerfile runs it, and so does `make images`,
# which is quicker: the machine has compiled most of it. The same sources and the same Go
# give the same bytes, so both give the same image.
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$1
shift
mkdir -p "$dir/data"
dir=$(cd "$dir" && pwd)

programs=("$@")
if ((${#programs[@]} == 0)); then
	programs=(entail)
	for main in services/*/cmd/*/; do
		[[ $main == services/internal/* ]] || programs+=("$(basename "$main")")
	done
fi

OUT=$dir SYMBOLS=none scripts/build.sh deploy ./docker/healthcheck
OUT=$dir scripts/build.sh deploy ./docker/sbom
for program in "${programs[@]}"; do
	root=$dir/$program
	mkdir -p "$root/bin" "$root/etc/ssl/certs"
	# Of what was made before, Go leaves the program alone if it is still that.
	find "$root" -type f ! -path "$root/bin/$program" -delete
	case $program in
	entail) OUT=$root/bin SYMBOLS=none scripts/build.sh services ./entail ;;
	kube-local)
		OUT=$root/bin deploy/local/build.sh
		rm "$root/bin/kube-local.stamp"
		;;
	*) OUT=$root/bin SYMBOLS=none scripts/build.sh services "./$program/cmd/$program" ;;
	esac
	cp "$dir/healthcheck" "$root/bin/"
	cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
	"$dir/sbom" "$root/bin/$program" >"$root/sbom.cdx.json"
done
rm "$dir/healthcheck" "$dir/sbom"

# Nothing of it is younger than what it is built from.
find "$dir" -exec touch --no-dereference --date="@${SOURCE_DATE_EPOCH:-0}" {} +
chmod -R u=rwX,go=rX "$dir"
