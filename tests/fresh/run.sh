#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What README tells a newcomer, `git clone`, `make run` and `make test`, on
# fresh machines: trees of Debian 12 and 13 with git, make and ca-certificates
# in them, and nothing else. In between what the docs show of TLS; then both
# compilers, warnings being errors.
# FRESH=bookworm or FRESH=trixie takes one. Needs root; works on HEAD. With
# --check it only looks whether it could do so, and what the docs show of TLS.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/debian.sh
source scripts/debian.sh
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/lib/checks.sh
source tests/lib/checks.sh

tree=''
in_the_tree=(git make ca-certificates)
holder=''  # of the namespaces of the tree: they go when it goes
sleeper='' # its child, the first process in them
inside=()  # in front of a command, runs it there

# Mounts and processes of the tree are in namespaces of their own, so that
# nothing outlives this script, even if it is killed.
tree_begin() { # release
    tree=$PWD/build/fresh/$1
    [ ! -e "$tree" ] || debian_remove "$tree"
    debian_unpack "$1" "$tree"
    printf '127.0.0.1 localhost\n::1 localhost\n' >"$tree/etc/hosts"
    # shellcheck disable=SC2016 # for the shell inside
    unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc "$1/proc" &&
        mount -t devpts devpts "$1/dev/pts" &&
        mkdir -p "$1/dev/shm" && mount -t tmpfs shm "$1/dev/shm" &&
        exec sleep infinity' sh "$tree" &
    holder=$!
    sleeper=$(child_of "$holder")
    eventually 10 grep -qx sleep "/proc/$sleeper/comm"
    # as root, who needs no sudo
    # shellcheck disable=SC2016 # for the shell inside
    inside=(nsenter --target "$sleeper" --mount --pid chroot "$tree"
        env -i HOME=/root LANG=C TERM=dumb DEBIAN_FRONTEND=noninteractive
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
        bash -c 'cd && { [ ! -d redlockd ] || cd redlockd; } && exec "$@"' bash)
    logged "${inside[@]}" apt-get update -qq
    logged "${inside[@]}" apt-get install -y -qq "${in_the_tree[@]}"
    git clone -q --bare . "$tree/root/redlockd.git"
}

tree_end() {
    if [ -n "$sleeper" ]; then
        kill -KILL "$holder" 2>/dev/null || true
        wait "$holder" 2>/dev/null || true
        eventually 10 test ! -e "/proc/$sleeper"
        sleeper=''
    fi
    [ -z "$tree" ] || [ ! -e "$tree" ] || debian_remove "$tree"
}

child_of() { # pid
    local children
    until children=$(cat "/proc/$1/task/$1/children") && [ -n "$children" ]; do
        kill -0 "$1" || return
        sleep 0.05
    done
    echo "${children%% *}"
}

# The whole output is in build/fresh/RELEASE.log; its end is shown on failure.
logged() { # command…
    local status=0
    "$@" >"$tree.log" 2>&1 || status=$?
    [ "$status" -eq 0 ] || tail -n 40 "$tree.log"
    return "$status"
}

show_log() { # lines
    tail -n "$1" "$tree.log" | sed 's/^/      | /'
}

left_over() { # processes in the tree but the one that holds it
    local space pid
    space=$(readlink "/proc/$sleeper/ns/pid")
    for pid in /proc/[0-9]*; do
        pid=${pid#/proc/}
        [ "$pid" = "$sleeper" ] ||
            [ "$(readlink "/proc/$pid/ns/pid" 2>/dev/null)" != "$space" ] ||
            tr '\0' ' ' <"/proc/$pid/cmdline"
    done
}

is_empty() { # of processes
    local left
    left=$(left_over || true)
    [ -z "$left" ] || {
        echo "left over: $left"
        return 1
    }
}

# Installing packages and compiling take their time.
becomes_ready() {
    local until=$((SECONDS + 400))
    until curl -fs -o /dev/null "http://$listen/readyz"; do
        if ! kill -0 "$running" || [ "$SECONDS" -ge "$until" ]; then
            tail -n 40 "$tree.log"
            return 1
        fi
        sleep 0.5
    done
}

serves() {
    local answer
    answer=$("${inside[@]}" curl -s -H 'Content-Type: application/json' \
        -d '{"resource":"order:42","ttl_ms":30000}' "http://$listen/locks")
    echo "$answer"
    [[ $answer == *'"fencing_token":'* ]]
}

# `make` is told to end, as by a service manager; scripts/run.sh must drain
# redlockd and take the five nodes with it.
ends() {
    local status=0 begun=$SECONDS
    kill -TERM "$(child_of "$running")" &&
        eventually 10 has_ended || return
    wait "$running" || status=$?
    echo "status $status after $((SECONDS - begun)) s"
    ! stack_is_taken "${listen##*:}" &&
        [ -z "$(compgen -G "$tree/tmp/redlockd.*")" ] &&
        tail -n 5 "$tree.log" && grep -q 'event=stop' "$tree.log"
}

has_ended() {
    ! kill -0 "$running" 2>/dev/null
}

check_run() { # release
    local other=()
    listen=127.0.0.1:8080
    if stack_is_taken 8080; then
        listen=127.0.0.1:8089
        other=(env "REDLOCKD_LISTEN=$listen")
    fi
    "${inside[@]}" "${other[@]}" make run >"$tree.log" 2>&1 &
    running=$!
    check "$1: make run is ready" becomes_ready
    show_log 9
    check "$1: make run serves README's curl" serves
    check "$1: make run ends when told" ends
    check "$1: make run leaves no process" eventually 2 is_empty
}

compiles() { # compiler
    "${inside[@]}" make clean
    "${inside[@]}" make -j2 CI=1 CC="$1" build tests
}

check_release() { # release
    local begun=$SECONDS
    echo "== $1"
    tree_begin "$1"
    "${inside[@]}" git -c advice.detachedHead=false clone -q redlockd.git redlockd
    check_run "$1"
    check "$1: locks over TLS, to clients and nodes" \
        logged "${inside[@]}" tests/fresh/tls.sh
    check "$1: TLS leaves no process" eventually 2 is_empty
    check "$1: make test passes" logged "${inside[@]}" make test
    show_log 6
    check "$1: make test leaves no process" eventually 2 is_empty
    check "$1: gcc warns of nothing" compiles gcc
    logged "${inside[@]}" apt-get install -y -qq --no-install-recommends clang
    check "$1: clang warns of nothing" compiles clang
    tree_end
    echo "== $1 took $((SECONDS - begun)) s"
}

if [ "${1:-}" = --check ]; then
    scripts/deps.sh debootstrap fresh
    checks_begin true
    check "each check is defined" checks_exist check_release check_run
    for release in ${FRESH:-bookworm trixie}; do
        check "$release: can be unpacked" debian_can_unpack "$release"
    done
    check "its packages can be had" debian_can_install clang \
        "${in_the_tree[@]}"
    check "locks over TLS, to clients and nodes" tests/fresh/tls.sh
    exit
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "Trees of another system need root: sudo make fresh" >&2
    exit 1
fi
scripts/deps.sh debootstrap fresh
[ -z "$(git status --porcelain)" ] ||
    echo "What is not committed is not in it."
checks_begin tree_end
for release in ${FRESH:-bookworm trixie}; do
    check_release "$release"
done
