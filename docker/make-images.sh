#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes base images from Debian's packages, for machines that cannot reach a
# registry: debian:trixie-slim, and the Redis and Prometheus of Debian 13 under
# the names that docker-compose.yml uses. With REDIS_IMAGE=valkey/valkey:8-alpine,
# Valkey in place of Redis. Existing images are kept. There is no Grafana in
# Debian.
#   docker/make-images.sh [--force]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian.sh
source scripts/debian.sh

base=debian:trixie-slim
redis=${REDIS_IMAGE:-redis:8-alpine}
case $redis in
*valkey*) server=valkey ;;
*) server=redis ;;
esac
prometheus=${PROMETHEUS_IMAGE:-prom/prometheus:v2.53.3}

is_wanted() { # image
    [ "$force" = --force ] || ! docker image inspect "$1" >/dev/null 2>&1
}

import() { # tree image docker-import-option…
    local tree=$1 image=$2
    shift 2
    tar -C "$tree" -c --one-file-system \
        --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' \
        --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' \
        --exclude='./usr/share/locale/*' --exclude='./var/log/*' . |
        docker import --message "made by docker/make-images.sh" \
            --change 'LABEL made-by="redlockd docker/make-images.sh"' \
            "$@" - "$image" >/dev/null
    echo "Made $image from Debian packages."
}

in_tree() { # tree command…
    local tree=$1
    shift
    chroot "$tree" /usr/bin/env DEBIAN_FRONTEND=noninteractive "$@" \
        >"$tree.log" 2>&1 || {
        tail -n 20 "$tree.log" >&2
        echo "$* failed" >&2
        return 1
    }
}

force=${1:-}
case $force in
'' | --force) ;;
*)
    sed -n '2,/^set/{/SPDX/d;s/^# *//p}' "$0"
    exit 2
    ;;
esac
docker version >/dev/null || exit
if ! is_wanted "$base" && ! is_wanted "$redis" && ! is_wanted "$prometheus"; then
    echo "$base, $redis and $prometheus exist; --force makes them again."
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "debootstrap needs root: sudo $0 $force" >&2
    exit 1
fi
scripts/deps.sh debootstrap

mkdir -p build
dir=$(mktemp -d build/images.XXXXXX)
clean_up() {
    local tree
    for tree in base redis prometheus; do
        [ ! -d "$dir/$tree" ] || debian_remove "$dir/$tree"
    done
    rm -rf "$dir"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
debian_unpack trixie "$dir/base"
in_tree "$dir/base" apt-get update -qq
in_tree "$dir/base" apt-get dist-upgrade -y -qq
! is_wanted "$base" || import "$dir/base" "$base" --change 'CMD ["bash"]'

# The base and one package more, in a tree of its own. The user, if any, has the
# numbers that it has in the images of a registry.
grow() { # name package [user]
    cp -a "$dir/base" "$dir/$1"
    [ $# -lt 3 ] || {
        in_tree "$dir/$1" groupadd --system --gid 1000 "$3"
        in_tree "$dir/$1" useradd --system --uid 999 --gid 1000 \
            --home-dir "/var/lib/$3" --shell /usr/sbin/nologin "$3"
    }
    # no init here to start it
    printf '#!/bin/sh\nexit 101\n' >"$dir/$1/usr/sbin/policy-rc.d"
    chmod +x "$dir/$1/usr/sbin/policy-rc.d"
    in_tree "$dir/$1" apt-get install -y -qq --no-install-recommends "$2"
}

if is_wanted "$redis"; then
    grow redis "$server-server" "$server"
    # in its images, Valkey has the names of Redis, too
    [ "$server" = redis ] || for name in server cli; do
        ln -s "/usr/bin/$server-$name" "$dir/redis/usr/local/bin/redis-$name"
    done
    in_tree "$dir/redis" install -d -o 999 -g 1000 /data
    import "$dir/redis" "$redis" --change 'USER 999:1000' --change 'WORKDIR /data' \
        --change 'VOLUME /data' --change 'EXPOSE 6379' \
        --change 'CMD ["redis-server"]'
fi
if is_wanted "$prometheus"; then
    grow prometheus prometheus
    in_tree "$dir/prometheus" install -d -o nobody -g nogroup /prometheus
    import "$dir/prometheus" "$prometheus" --change 'USER nobody' \
        --change 'WORKDIR /prometheus' --change 'VOLUME /prometheus' \
        --change 'EXPOSE 9090' --change 'ENTRYPOINT ["/bin/prometheus"]'
fi
