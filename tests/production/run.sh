#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Follows docs/deploy/production.md on six bare Debian 12 machines. Needs root. With
# --check it only looks whether it could; all else goes to guide.py.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/debian.sh
source scripts/debian.sh
# shellcheck source=tests/lib/checks.sh
source tests/lib/checks.sh

work=$PWD/build/production
base=$work/base
# what a minimal installation has, and what the guide wants before it begins
bare=(systemd systemd-sysv dbus openssh-server openssh-client iproute2)
# what the guide installs: fetched once, not by each of the machines
fetched=(curl openssl jq redis-server prometheus libmicrohttpd12 libhiredis0.14
    libjansson4 libuv1 libgnutls30 libsystemd0 libcurl4)

# A tree that all machines stand on, with ssh from each to each.
make_base() {
    local install=(apt-get install -y -qq --no-install-recommends)
    debian_prepare bookworm "$base" &&
        debian_run "$base" "${install[@]}" "${bare[@]}" &&
        debian_run "$base" "${install[@]}" --download-only "${fetched[@]}" ||
        return
    rm "$base/usr/sbin/policy-rc.d"
    # shellcheck disable=SC2016 # for the shell inside
    debian_run "$base" sh -ec 'install -d -m 700 /root/.ssh
        cd /root/.ssh
        ssh-keygen -q -t ed25519 -N "" -f id_ed25519
        cp id_ed25519.pub authorized_keys
        for host in n1 n2 n3 n4 n5 admin; do
            sed "s/^/$host /" /etc/ssh/ssh_host_*.pub
        done >known_hosts'
}

if [ "${1:-}" = --check ]; then
    scripts/deps.sh debootstrap fresh
    checks_begin true
    check "bookworm: can be unpacked" debian_can_unpack bookworm
    check "its packages can be had" debian_can_install "${bare[@]}" \
        redis-server prometheus
    check "each block says where" env PYTHONDONTWRITEBYTECODE=1 \
        python3 tests/production/guide.py --list
    exit
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Trees of another system need root: sudo make production" >&2
    exit 1
fi
scripts/deps.sh build deb debootstrap
mkdir -p "$work"
rm -rf "$work/machines"
scripts/deb.sh "$work/deb" >"$work/deb.log" 2>&1 || {
    tail -n 30 "$work/deb.log"
    exit 1
}
make_base >"$work/base.log" 2>&1 || {
    tail -n 30 "$work/base.log"
    exit 1
}
export PYTHONDONTWRITEBYTECODE=1
exec setpriv --pdeathsig TERM -- \
    python3 tests/production/guide.py "$work" "$@"
