#!/usr/bin/env bash
# opensearch.sh puts OpenSearch with its security plugin into bin/opensearch, a link into a
# cache. What is there is named by the sums of both, and by the Java that they run in: only
# another version, or another Java, is installed again.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

sums=$PWD/scripts/opensearch.sha256
version=$(sed -n 's/^.* opensearch-\([0-9.]*\)\.zip$/\1/p' "$sums")
copy=org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy
# A server that root starts runs as a user who sees nothing below root's own directories.
if ((EUID == 0)); then default=/var/cache/entail; else default=${XDG_CACHE_HOME:-$HOME/.cache}/entail; fi
cache=${ENTAIL_CACHE:-$default}/opensearch

java=java
home=${OPENSEARCH_JAVA_HOME:-${JAVA_HOME:-}}
[[ -z $home ]] || java=$home/bin/java

# need COMMAND PACKAGE installs what is missing where that can be, or says what to do.
need() {
	command -v "$1" >/dev/null && return
	if ((EUID == 0)) && command -v apt-get >/dev/null; then
		echo "installing $2, for there is no $1" >&2
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >&2
	else
		echo "OpenSearch needs $1: install it (on Debian: apt-get install $2)" >&2
		exit 1
	fi
}

need "$java" default-jre-headless
java_version=$("$java" -version 2>&1)
case $(sed -n '1s/.*version "\([0-9]*\).*/\1/p' <<<"$java_version") in
11 | 1[7-9] | 2[0-3]) ;;
*)
	echo "OpenSearch $version runs in Java 17 or 21; set JAVA_HOME to one. This is ${java_version%%$'\n'*}" >&2
	exit 1
	;;
esac

digest() {
	if command -v sha256sum >/dev/null; then sha256sum "$@"; else shasum -a 256 "$@"; fi
}
arguments=services/internal/devserver/opensearch/arguments.go
installed=$cache/$({ cat "$sums" "$arguments" && echo "$java_version"; } | digest | cut -c1-32)

if [[ ! -e $installed/classes.jsa ]]; then
	need mvn maven
	need unzip unzip
	mkdir -p "$cache"
	scratch=$(mktemp -d "$cache/.install-XXXXXX")
	trap 'rm -rf "$scratch"' EXIT
fi

# fetch FILE GROUP:NAME:VERSION takes a file by Maven, which keeps it, and shows how far it is on a terminal.
fetch() {
	local quiet=(-q)
	[[ ! -t 2 ]] || quiet=()
	mvn "${quiet[@]}" "$copy" -Dartifact="$2:zip" -DoutputDirectory="$scratch" >&2
	[[ -e $scratch/$1 ]]
}

if [[ ! -e $installed/lib ]]; then
	echo "fetching OpenSearch $version and its security plugin (100 MB)" >&2
	fetch "opensearch-$version.zip" "org.opensearch.distribution.integ-test-zip:opensearch:$version"
	fetch "opensearch-security-$version.0.zip" "org.opensearch.plugin:opensearch-security:$version.0"
	(cd "$scratch" && digest -c "$sums" >&2)
	echo "unpacking them into $installed" >&2
	plugin=$scratch/opensearch-$version/plugins/opensearch-security
	unzip -q "$scratch/opensearch-$version.zip" -d "$scratch"
	unzip -q "$scratch/opensearch-security-$version.0.zip" -d "$plugin"
	mv "$plugin/config" "$scratch/opensearch-$version/config/opensearch-security"
	chmod -R a+rX "$scratch/opensearch-$version"
	rm -rf "$installed"
	mv "$scratch/opensearch-$version" "$installed"
fi
if [[ ! -e $installed/classes.jsa ]]; then
	echo "starting it once, so that later starts are quick (half a minute)" >&2
	(cd services && GOWORK=off go run ./internal/cmd/opensearch-archive "$installed")
fi

chmod a+rx "$cache" "$(dirname "$cache")"
mkdir -p bin
ln -sfn "$installed" bin/opensearch
touch "$installed"
# What no build has asked for in 30 days is forgotten.
find "$cache" -mindepth 1 -maxdepth 1 -type d -mtime +30 -exec rm -rf {} +
