#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Builds the packages of the clients from the files of the last commit, all of one
# version and with the same bytes each time:
#   clients.sh FOLDER
# A wheel and a source archive for Python, an archive for npm, a zip for Composer, a
# gem, jars and a pom for Maven, a crate; and in FOLDER/go the module for Go, as its
# proxies serve it.
set -euo pipefail
to=$(realpath -m "${1:?clients.sh FOLDER}")
cd "$(dirname "$0")/.."

[ -e .git ] || {
    echo "clients.sh: this is no clone" >&2
    exit 1
}
version=$(cat VERSION)
build=$to/tmp
from=$build/source/api/clients
rm -rf "$to"
mkdir -p "$build/source"
clean_up() {
    local status=$?
    [ "$status" -eq 0 ] || tail -n 40 "$build/log" >&2
    rm -rf "$build"
}
trap clean_up EXIT
umask 022
# the time of each file in an archive: that of the commit
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH TZ=UTC
git -c tar.umask=022 archive HEAD | tar -C "$build/source" -x

build_python() {
    python3 -m venv "$build/venv"
    # hatchling writes its version into the wheel
    "$build/venv/bin/pip" install -q --disable-pip-version-check \
        -c tests/python/requirements.txt hatchling
    (cd "$from/python" && "$build/venv/bin/python" -m hatchling build -d "$to" \
        -t sdist -t wheel)
}

build_node() {
    (cd "$build" && npm pack --silent --offline --pack-destination "$to" "$from/node")
}

build_java() {
    local classes=$build/classes date name
    name=$to/$(sed -n 's|^  <artifactId>\(.*\)</artifactId>$|\1|p' "$from/java/pom.xml")-$version
    date=$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)
    mkdir -p "$classes/META-INF"
    cp "$from/java/LICENSE" "$classes/META-INF/"
    find "$from/java/src/main/java" -name '*.java' -print0 | sort -z |
        xargs -0 javac --release 11 -d "$classes"
    jar --create --file "$name.jar" --date "$date" -C "$classes" .
    jar --create --file "$name-sources.jar" --date "$date" \
        -C "$from/java/src/main/java" . -C "$classes" META-INF/LICENSE
    cp "$from/java/pom.xml" "$name.pom"
}

# With the compiler and the crates of Debian, as tests/rust/run.sh; the lock file in
# the crate, which is for its example, lists these.
build_rust() {
    mkdir "$build/cargo"
    cat >"$build/cargo/config.toml" <<'END'
[source.crates-io]
replace-with = "debian"
[source.debian]
directory = "/usr/share/cargo/registry"
END
    (cd "$from/rust" && env -u RUSTC -u RUSTUP_TOOLCHAIN PATH="/usr/bin:$PATH" \
        CARGO_HOME="$build/cargo" CARGO_TARGET_DIR="$build/target" \
        cargo package --quiet --offline --no-verify --allow-dirty)
    cp "$build/target/package/"*.crate "$to/"
}

build_all() {
    build_python
    build_node
    "$build/source/scripts/gomod.py" "$to/go"
    (cd api/clients/php &&
        git archive --format=zip -o "$to/redlockd-php-$version.zip" HEAD)
    (cd "$from/ruby" && gem build --silent ./*.gemspec && cp ./*.gem "$to/")
    build_java
    build_rust
}
build_all >"$build/log" 2>&1 # not in a condition: there, its commands may fail
cd "$to"
find . -type f -not -path './tmp/*' -printf '%P\n' | sort
