#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the Debian packages of redlockd for this system into a folder:
#   deb.sh FOLDER
# from a copy of the files that git knows, or of all without git. The version
# is VERSION and the release of Debian, so that an upgrade of the system brings
# its packages; two builds give the same bytes.
set -euo pipefail
out=$(realpath -m "${1:?deb.sh FOLDER}")
cd "$(dirname "$0")/.."

sources() { # names that end with NUL
    if [ -e .git ]; then
        git ls-files -z --cached --others --exclude-standard
    else
        find . -path ./build -prune -o -type f -print0
    fi
}

version=$(cat VERSION)
release=$(. /etc/os-release && echo "${ID:-debian}${VERSION_ID:-}")
release=${release/#debian/deb}
rm -rf "$out"
mkdir -p "$out/redlockd-$version"
sources | while IFS= read -r -d '' name; do
    [ ! -e "$name" ] || printf '%s\0' "$name"
done | tar --null --files-from - -c | tar -C "$out/redlockd-$version" -x
cd "$out/redlockd-$version"
sed -i "1s/($version)/($version~$release)/" debian/changelog
head -n 1 debian/changelog | grep -qF "($version~$release)" || {
    echo "debian/changelog: its version is not that of VERSION, $version" >&2
    exit 1
}
dpkg-buildpackage -b -uc -us -j"$(nproc)" >../build.log 2>&1 || {
    tail -n 40 ../build.log >&2
    exit 1
}
cd ..
rm -rf "redlockd-$version"
lintian --allow-root --display-info --fail-on error,warning ./*.changes
ls -- *.deb
