#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Gets Valkey of Debian 13 into build/valkey, and prints the folder of programs
# called redis-server and redis-cli that run it: to be put before PATH, so that
# any test of ours runs over Valkey. Nothing is installed on this machine.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/debian.sh
source scripts/debian.sh

dir=$PWD/build/valkey

# apt for a system of Debian 13 on which nothing is installed
apt_of_13() { # apt-get-argument…
    apt-get -qq -o Dir::State="$dir/state" -o Dir::State::status="$dir/status" \
        -o Dir::Cache="$dir/cache" -o Dir::Etc::SourceList="$dir/sources" \
        -o Dir::Etc::SourceParts=- -o APT::Sandbox::User=root \
        -o APT::Install-Recommends=no "$@"
}

get_packages() {
    local main
    rm -rf "$dir"
    mkdir -p "$dir"/{state/lists/partial,cache/archives/partial,tree,bin}
    : >"$dir/status"
    main=$(debian_archive main)
    echo "deb ${main:-http://deb.debian.org/debian} trixie main" >"$dir/sources"
    apt_of_13 update
    apt_of_13 --download-only -y install valkey-server valkey-tools
    for package in "$dir"/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$dir/tree"
    done
    rm -rf "$dir/cache" "$dir/state"
}

# Its own loader and libraries: those of this machine may be older.
make_program() { # name program
    cat >"$dir/bin/$1" <<END
#!/bin/sh
lib=\$(echo "$dir"/tree/usr/lib/*-linux-gnu*)
exec "\$lib"/ld-linux-*.so.* --library-path "\$lib" "$dir/tree/usr/bin/$2" "\$@"
END
    chmod +x "$dir/bin/$1"
}

mkdir -p build
exec 9>build/valkey.lock
flock 9 # a test beside this one may want it, too
if [ ! -e "$dir/bin/redis-cli" ]; then
    get_packages >&2
    make_program redis-server valkey-server
    make_program redis-cli valkey-cli
fi
echo "$dir/bin"
