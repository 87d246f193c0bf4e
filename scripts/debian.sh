# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# To be sourced: makes minimal Debian systems in folders with debootstrap.
#
# If the host is a Debian, the mirror and proxy of its apt are used.

# The archives of the host's apt, as lines "kind URI"; kind: main or security.
debian_archives() {
    # shellcheck disable=SC2016 # apt fills them in
    { apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(RELEASE)' \
        2>/dev/null || true; } | awk '$2 == "Debian" {
            kind = $3 ~ /-security$/ ? "security" : "main"
            if (!seen[kind]++) print kind, $1
        }'
}

debian_archive() { # kind
    debian_archives | sed -n "s/^$1 //p"
}

# Whether a tree of this release could be made.
debian_can_unpack() { # release
    local release=$1 main proxy
    main=$(debian_archive main)
    main=${main:-http://deb.debian.org/debian}
    ls "/usr/share/debootstrap/scripts/$release" || return
    proxy=$(debian_proxy)
    curl -fsS ${proxy:+--proxy "$proxy"} --retry 2 --max-time 20 -o /dev/null \
        "${main%/}/dists/$release/Release"
}

# Whether there are packages of these names, by what the host's apt knows.
debian_can_install() { # package…
    apt-get install --simulate -qq --no-install-recommends "$@"
}

# Lets apt in a tree get packages from where the host's apt does.
debian_use_archives() { # release tree
    local release=$1 tree=$2 main security
    main=$(debian_archive main)
    security=$(debian_archive security)
    if [ -n "$main" ]; then
        echo "deb $main $release main"
        echo "deb $main $release-updates main"
        [ -z "$security" ] || echo "deb $security $release-security main"
    else
        cat "$tree/etc/apt/sources.list"
    fi >"$tree/etc/apt/sources.list.new"
    mv "$tree/etc/apt/sources.list.new" "$tree/etc/apt/sources.list"
    apt-config dump 2>/dev/null | grep -iE '^Acquire::https?::Proxy ' \
        >"$tree/etc/apt/apt.conf.d/01proxy" ||
        rm "$tree/etc/apt/apt.conf.d/01proxy"
    cp /etc/resolv.conf "$tree/etc/resolv.conf"
}

# A minimal release in an empty folder. Each is made once, in build/debian.
debian_unpack() { # release tree
    local release=$1 tree=$2 kept=build/debian/$1.tar
    mkdir -p "$tree" "${kept%/*}"
    if [ -f "$kept" ]; then
        tar -C "$tree" -xf "$kept"
    else
        debian_bootstrap "$release" "$tree" >"$kept.log" 2>&1 || {
            tail -n 20 "$kept.log" >&2
            echo "debootstrap $release failed" >&2
            return 1
        }
        tar -C "$tree" -cf "$kept.new" --one-file-system \
            --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' .
        mv "$kept.new" "$kept"
    fi
    debian_use_archives "$release" "$tree"
}

debian_bootstrap() { # release tree
    local main proxy
    main=$(debian_archive main)
    proxy=$(debian_proxy)
    env ${proxy:+http_proxy="$proxy"} \
        debootstrap --variant=minbase "$1" "$2" ${main:+"$main"}
}

debian_proxy() { # of the host's apt, if any
    local proxy=''
    eval "$(apt-config shell proxy Acquire::http::Proxy 2>/dev/null || true)"
    echo "$proxy"
}

# A new tree to install packages in: no daemon starts in it as long as it has
# usr/sbin/policy-rc.d.
debian_prepare() { # release tree
    [ ! -e "$2" ] || debian_remove "$2"
    debian_unpack "$1" "$2" || return
    printf '#!/bin/sh\nexit 101\n' >"$2/usr/sbin/policy-rc.d"
    chmod 755 "$2/usr/sbin/policy-rc.d"
    echo force-unsafe-io >"$2/etc/dpkg/dpkg.cfg.d/fast"
    debian_run "$2" apt-get update -qq
}

# Runs a command in a tree, with the host's network.
debian_run() { # tree command…
    # shellcheck disable=SC2016 # for the shell inside
    unshare --mount --pid --fork --kill-child sh -ec '
        mount -t proc proc "$1/proc"
        root=$1
        shift
        exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 \
            DEBIAN_FRONTEND=noninteractive \
            PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
            "$@"' sh "$@"
}

# Unmounts what is mounted below a tree, then deletes it.
debian_remove() { # tree
    local tree mount
    tree=$(realpath "$1")
    while read -r mount; do
        umount "$mount" || umount --lazy "$mount"
    done < <(awk -v tree="$tree/" 'index($2, tree) == 1 {print $2}' \
        /proc/mounts | sort -r)
    rm -rf --one-file-system "$tree"
}
