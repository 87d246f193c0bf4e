#!/usr/bin/env bash
# Builds the packages of the clients into a folder, all of one version and with
# the same bytes each time: a wheel for Python, a tarball for npm, a zip for Go.
#   clients.sh FOLDER
set -euo pipefail
to=$(realpath -m "$1")
cd "$(dirname "$0")/.."

build=$to/tmp
rm -rf "$to"
mkdir -p "$build"
trap 'rm -rf "$build"' EXIT
# the time of what is in the wheel: that of the last commit
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

python3 -m venv "$build/venv"
"$build/venv/bin/pip" wheel -q --disable-pip-version-check --no-deps -w "$to" \
    api/clients/python
npm pack --silent --pack-destination "$to" ./api/clients/node >"$build/npm"
scripts/gomod.py "$build/proxy"
find "$build/proxy" -name 'v*.zip' -exec cp {} "$to/" \;
rm -rf "$build"
ls "$to"
