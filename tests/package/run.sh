#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Debian packages on Debian 12 and 13: they are built twice with the same
# bytes, then installed, configured, run, upgraded, removed and purged on a
# minimal system that systemd has booted; the sandbox of the unit is real.
# DEB=bookworm or DEB=trixie takes one. Needs root. With --check it only looks
# whether it could do so.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/debian.sh
source scripts/debian.sh
# shellcheck source=tests/lib/checks.sh
source tests/lib/checks.sh
# shellcheck source=tests/package/boot.sh
source tests/package/boot.sh
# shellcheck source=tests/package/story.sh
source tests/package/story.sh
# shellcheck source=tests/package/files.sh
source tests/package/files.sh

tree=''
log=''
in_the_tree=(systemd systemd-sysv dbus redis-server curl man-db logrotate
    openssl)

tree_begin() { # release kind
    tree=$PWD/build/package/$1-$2
    log=$tree.log
    debian_prepare "$1" "$tree" || return
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$tree/etc/hosts"
}

# What it prints is shown if it fails.
in_tree() { # command…
    debian_run "$tree" "$@" >"$log" 2>&1 || {
        tail -n 30 "$log"
        return 1
    }
}

in_tree_install() { # package…
    in_tree apt-get install -y -qq --no-install-recommends "$@"
}

tree_end() {
    [ -z "$tree" ] || [ ! -e "$tree" ] || debian_remove "$tree"
}

clean_up() {
    boot_end
    tree_end
}

is_host() { # release
    [ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" = "$1" ]
}

# ---- the packages -------------------------------------------------------

# On the host if that has this release, else in a tree.
builds_twice() { # release
    if is_host "$1"; then
        scripts/deps.sh build deb &&
            scripts/deb.sh "$packages" && scripts/deb.sh "$packages/again"
        return
    fi
    tree_begin "$1" build && in_tree_install make || return
    mkdir "$tree/root/redlockd"
    git ls-files -z --cached --others --exclude-standard |
        tar --null --files-from - -c | tar -C "$tree/root/redlockd" -x
    in_tree sh -ec 'cd /root/redlockd
        make deb
        scripts/deb.sh build/deb/again' || return
    rm -rf "$packages"
    cp -r "$tree/root/redlockd/build/deb" "$packages"
    tree_end
}

are_the_same() {
    local one
    [ -e "$packages/again" ] || return
    for one in "$packages"/*.deb; do
        cmp "$one" "$packages/again/${one##*/}" || return
    done
}

# ---- one release ----------------------------------------------------------

prepare() { # release
    tree_begin "$1" run &&
        in_tree_install "${in_the_tree[@]}" || return
    printf '%s\n' 'unixsocket /run/redis/redis-server.sock' \
        'unixsocketperm 770' >>"$tree/etc/redis/redis.conf"
    mkdir "$tree/root/packages"
    cp "$packages"/redlockd_*.deb "$packages"/redlockctl_*.deb \
        "$tree/root/packages/"
    # the booted system has no network
    in_tree sh -c 'apt-get install -y -qq --no-install-recommends \
        --download-only /root/packages/*.deb' || return
    rm "$tree/usr/sbin/policy-rc.d"
}

check_release() { # release
    local begun=$SECONDS
    echo "== $1"
    packages=$PWD/build/package/$1
    rm -rf "$packages"
    mkdir -p "$packages"
    check_or_end "$1: builds, and lintian has nothing to say" builds_twice "$1"
    check "$1: two builds give the same bytes" are_the_same
    check_or_end "$1: the tree is made" prepare "$1"
    check_or_end "$1: boots" boot_begin "$tree"
    story "$1"
    boot_end
    tree_end
    echo "== $1 took $((SECONDS - begun)) s"
}

if [ "${1:-}" = --check ]; then
    scripts/deps.sh debootstrap fresh
    checks_begin true
    check "each check is defined" checks_exist check_release story \
        story_of_files
    for release in ${DEB:-bookworm trixie}; do
        check "$release: can be unpacked" debian_can_unpack "$release"
    done
    check "its packages can be had" debian_can_install make \
        "${in_the_tree[@]}"
    exit
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Trees of another system need root: sudo make deb-test" >&2
    exit 1
fi
scripts/deps.sh debootstrap
checks_begin clean_up
for release in ${DEB:-bookworm trixie}; do
    check_release "$release"
done
