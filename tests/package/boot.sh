# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# To be sourced: boots a tree of Debian with systemd, in namespaces of its own.
# It has loopback and no other network. Nothing outlives the script.

boot_holder='' # of the namespaces: they go when it goes
boot_init=''   # systemd, the first process in them
boot_group=''  # of control: below it systemd has its own

boot_begin() { # tree
    local groups enter
    groups=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
    [ -n "$groups" ] || {
        echo "systemd needs a mounted cgroup2" >&2
        return 1
    }
    boot_group=$groups/redlockd-package.$$
    mkdir "$boot_group"
    enter=$(declare -f boot_enter | sed 1d)
    # shellcheck disable=SC2016 # for the shell inside
    setpriv --pdeathsig KILL -- sh -c '
        echo $$ >"$1/cgroup.procs" &&
        exec unshare --mount --pid --fork --kill-child --cgroup --uts --ipc \
            --net --propagation private sh -ec "$2" sh "$3"' \
        sh "$boot_group" "$enter; exec env -i \
            container=redlockd PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            /lib/systemd/systemd" "$1" \
        </dev/null >"$1.boot.log" 2>&1 &
    boot_holder=$!
    boot_init=$(child_of "$boot_holder")
    eventually 60 boot_is_up
}

# Runs in the namespaces, in sh: makes a tree the root, with all that systemd
# wants of a container manager.
boot_enter() { # tree
    mount --rbind "$1" "$1"
    cd "$1" || exit
    mount -t proc proc proc
    mount -t sysfs sysfs sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    mount -t tmpfs -o mode=755 tmpfs run
    mount -t tmpfs -o mode=755 tmpfs dev
    mkdir dev/pts dev/shm
    for name in null zero full random urandom tty; do
        : >"dev/$name"
        mount --bind "/dev/$name" "dev/$name"
    done
    mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
    mount -t tmpfs tmpfs dev/shm
    ln -s pts/ptmx dev/ptmx
    ln -s /proc/self/fd dev/fd
    : >dev/console
    : >console.log
    mount --bind console.log dev/console
    hostname package
    pivot_root . mnt
    umount -l /mnt
    mount --make-rshared / # or services do not see their credentials
}

inside() { # command…
    nsenter --target "$boot_init" --all env -i HOME=/root LANG=C.UTF-8 \
        TERM=dumb PAGER=cat DEBIAN_FRONTEND=noninteractive \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# "degraded" is enough: a console, for one, is missing.
boot_is_up() {
    local state
    state=$(inside systemctl is-system-running 2>&1) || true
    [ "$state" = running ] || [ "$state" = degraded ]
}

boot_end() {
    [ -n "$boot_holder" ] || return 0
    kill -KILL "$boot_init" "$boot_holder" 2>/dev/null || true
    wait "$boot_holder" 2>/dev/null || true
    eventually 10 test ! -e "/proc/$boot_init"
    eventually 10 rmdir_group
    boot_holder=''
}

rmdir_group() { # and those that systemd has made below it
    find "$boot_group" -depth -type d -exec rmdir {} + 2>/dev/null || true
    [ ! -e "$boot_group" ]
}

child_of() { # pid
    local children
    until children=$(cat "/proc/$1/task/$1/children") && [ -n "$children" ]; do
        kill -0 "$1" || return
        sleep 0.05
    done
    echo "${children%% *}"
}
