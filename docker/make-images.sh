#!/usr/bin/env bash
# Makes the two base images from Debian's packages, for machines that cannot
# reach a registry: debian:trixie-slim, and the Redis of Debian 13 under the
# name that docker-compose.yml uses. Existing images are kept.
#   docker/make-images.sh [--force]
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian.sh
source scripts/debian.sh

base=debian:trixie-slim
redis=${REDIS_IMAGE:-redis:8-alpine}

is_wanted() { # image
    [ "$force" = --force ] || ! docker image inspect "$1" >/dev/null 2>&1
}

import() { # image docker-import-option…
    local image=$1
    shift
    tar -C "$tree" -c --one-file-system \
        --exclude='./var/cache/apt/*' --exclude='./var/lib/apt/lists/*' \
        --exclude='./usr/share/doc/*' --exclude='./usr/share/man/*' \
        --exclude='./usr/share/locale/*' --exclude='./var/log/*' . |
        docker import --message "made by docker/make-images.sh" \
            --change 'LABEL made-by="redlockd docker/make-images.sh"' \
            "$@" - "$image" >/dev/null
    echo "Made $image from Debian packages."
}

in_tree() { # command…
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
    sed -n '2,/^set/s/^# *//p' "$0"
    exit 2
    ;;
esac
docker version >/dev/null || exit
if ! is_wanted "$base" && ! is_wanted "$redis"; then
    echo "$base and $redis exist; --force makes them again."
    exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "debootstrap needs root: sudo $0 $force" >&2
    exit 1
fi
scripts/deps.sh debootstrap

mkdir -p build
dir=$(mktemp -d build/images.XXXXXX)
tree=$dir/tree
trap 'debian_remove "$tree"; rm -rf "$dir"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
debian_unpack trixie "$tree"
in_tree apt-get update -qq
in_tree apt-get dist-upgrade -y -qq
! is_wanted "$base" || import "$base" --change 'CMD ["bash"]'
is_wanted "$redis" || exit 0

# no init here to start it
printf '#!/bin/sh\nexit 101\n' >"$tree/usr/sbin/policy-rc.d"
chmod +x "$tree/usr/sbin/policy-rc.d"
in_tree apt-get install -y -qq --no-install-recommends redis-server
in_tree install -d -o redis -g redis /data
import "$redis" --change 'USER redis' --change 'WORKDIR /data' \
    --change 'VOLUME /data' --change 'EXPOSE 6379' \
    --change 'CMD ["redis-server"]'
