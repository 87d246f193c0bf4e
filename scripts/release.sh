#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Makes the files of a release from the last commit. It publishes nothing.
#   release.sh VERSION [FOLDER]
# VERSION must be that of the file VERSION, and everything must be committed. FOLDER,
# dist without a name, is made anew: it may only have what a release has. The same
# commit gives the same bytes, as long as Debian's archive has the same packages; only
# signatures differ. Variables:
#   PARTS        some of: source clients packages image; all are made without it
#   RELEASE_KEY  signs with GnuPG: a secret key as text, or the id of one in
#                GNUPGHOME; without it nothing is signed
# The packages and the image are for the architecture of this machine, and need root.
set -euo pipefail
version=${1:?release.sh VERSION [FOLDER]}
out=$(realpath -m "${2:-dist}")
cd "$(dirname "$0")/.."
# shellcheck source=scripts/debian.sh
source scripts/debian.sh
# shellcheck source=scripts/project.env
source scripts/project.env

parts=${PARTS:-source clients packages image}
releases=(bookworm:12 trixie:13)
name=redlockd-$version
work='' # a folder in build/, for trees of Debian among others
source=''
key=''
keys='' # a folder of GnuPG with that key; not in $work, as sockets need short paths

refuse() {
    echo "release: $1" >&2
    exit 1
}

may_begin() {
    local changed part
    [ "$version" = "$(cat VERSION)" ] ||
        refuse "VERSION=$version is not the version of the file VERSION, $(cat VERSION)"
    # else git would take the repository around this folder, which may not know it
    [ -e .git ] || refuse "this is no clone, and a release is made from a commit"
    changed=$(git status --porcelain)
    [ -z "$changed" ] || refuse "commit these first, or remove them:"$'\n'"$changed"
    for part in $parts; do
        case $part in
        source | clients) ;;
        packages | image)
            [ "$(id -u)" -eq 0 ] || refuse "trees of Debian for the $part need root"
            ;;
        *) refuse "PARTS has no $part" ;;
        esac
    done
    notes | grep -q . || refuse "CHANGELOG.md has no section ## $version"
    [ ! -e "$out" ] || [ -d "$out" ] || refuse "$out is no folder"
    for part in "$out"/* "$out"/.*; do
        is_ours "${part##*/}" || [ ! -e "$part" ] ||
            refuse "$out is not the folder of a release: it has ${part##*/}"
    done
}

is_ours() { # name, in the folder of a release
    case $1 in
    . | .. | apt | clients | NOTES.md | SHA256SUMS | SHA256SUMS.asc | redlockd.gpg | \
        redlockd-[0-9]*) ;;
    *) return 1 ;;
    esac
}

clean_up() {
    local status=$? tree
    [ "$status" -eq 0 ] || {
        [ ! -e "$work/log" ] || tail -n 40 "$work/log" >&2
        echo "release: failed, $out is not complete" >&2
    }
    for tree in "$work"/tree-*; do
        [ ! -d "$tree" ] || debian_remove "$tree"
    done
    [ -z "$keys" ] || {
        gpgconf --homedir "$keys" --kill all || true
        rm -rf "$keys"
    }
    rm -rf "$work"
}

says() {
    printf '%s\n' "$1" >&3
}

# ---- sources, and what the clients use ------------------------------------------

notes() { # the section of CHANGELOG.md for this version
    awk -v version="$version" '/^## / {is_ours = $2 == version; next}
        is_ours' CHANGELOG.md
}

make_source() {
    git -c tar.umask=022 archive --prefix "$name/" HEAD | gzip -9n >"$work/$name.tar.gz"
    tar -C "$work" -xf "$work/$name.tar.gz"
}

# ---- packages of Debian ----------------------------------------------------------

# In a bare tree, by what a user does: make deb.
build_packages() { # release
    local tree=$work/tree-$1
    debian_prepare "$1" "$tree"
    debian_run "$tree" apt-get install -y -qq --no-install-recommends make
    cp -a "$source" "$tree/root/"
    debian_run "$tree" make -C "/root/$name" deb
    mkdir -p "$out/apt/pool/$1"
    cp "$tree/root/$name/build/deb/"*.deb "$out/apt/pool/$1/"
    debian_remove "$tree"
}

# The files of both packages in one archive, for those who install them by hand.
pack_binaries() { # release number
    local folder=$name-debian$2-$arch package
    mkdir "$work/$folder"
    for package in redlockd redlockctl; do
        dpkg-deb -x "$out/apt/pool/$1/${package}_$version~deb$2_$arch.deb" \
            "$work/$folder"
    done
    pack "$work" "$folder" | gzip -9n >"$out/$folder.tar.gz"
}

# An archive of the same bytes each time, also below a folder whose group is inherited.
pack() { # folder name…
    tar -C "$1" -c --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
        --numeric-owner --mode=g-s --format=gnu "${@:2}"
}

# What apt-get reads, from a web server or from file:.
index_packages() { # release
    local suite=dists/$1 folder=dists/$1/main/binary-$arch field
    mkdir -p "$folder"
    find "pool/$1" -name '*.deb' | sort | while IFS= read -r field; do
        apt-ftparchive --arch "$arch" packages "$field"
    done >"$folder/Packages"
    gzip -9nk "$folder/Packages"
    local options=()
    for field in Origin=redlockd Label=redlockd "Suite=$1" "Codename=$1" \
        "Architectures=$arch" Components=main; do
        options+=(-o "APT::FTPArchive::Release::$field")
    done
    apt-ftparchive "${options[@]}" release "$suite" |
        sed "s/^Date: .*/Date: $(date -u -d "@$SOURCE_DATE_EPOCH" -R)/" >"$work/Release"
    mv "$work/Release" "$suite/Release"
    [ -z "$key" ] || {
        sign --clear-sign -o "$suite/InRelease" "$suite/Release"
        sign --detach-sign --armor -o "$suite/Release.gpg" "$suite/Release"
    }
}

make_packages() {
    local one
    for one in "${releases[@]}"; do
        says "packages of Debian ${one#*:}"
        build_packages "${one%:*}"
        pack_binaries "${one%:*}" "${one#*:}"
        (cd "$out/apt" && index_packages "${one%:*}")
    done
    pack "$out" --exclude=InRelease --exclude=Release.gpg apt |
        gzip -9n >"$out/$name-apt.tar.gz"
    [ -z "$key" ] || cp "$out/redlockd.gpg" "$out/apt/"
}

# ---- the image ---------------------------------------------------------------------

image_tool() { # command…: buildah, with what it stores in $work
    buildah --root "$work/storage" --runroot "$work/run" --storage-driver vfs "$@"
}

image_build() { # option…
    image_tool build --isolation chroot --network host --format docker \
        --timestamp "$SOURCE_DATE_EPOCH" --identity-label=false --pull-never \
        --signature-policy "$work/policy.json" "$@"
}

debian_lines() { # archive security-archive: for apt
    printf 'deb %s main\n' "$1 trixie" "$1 trixie-updates" "$2 trixie-security"
}

# debian:trixie-slim from Debian's packages, for machines that cannot reach a registry.
make_base() {
    local main security proxy
    local public=(http://deb.debian.org/debian http://deb.debian.org/debian-security)
    main=$(debian_archive main)
    security=$(debian_archive security)
    proxy=$(debian_proxy)
    debian_lines "${public[@]}" >"$work/public.list"
    debian_lines "${main:-${public[0]}}" "${security:-${public[1]}}" \
        >"$work/sources.list"
    local lines
    mapfile -t lines <"$work/sources.list"
    # shellcheck disable=SC2016 # for the shell of mmdebstrap
    env ${proxy:+http_proxy="$proxy"} PUBLIC="$work/public.list" \
        mmdebstrap --mode=root --variant=apt \
        --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' \
        --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/locale/*' \
        --customize-hook='cp "$PUBLIC" "$1/etc/apt/sources.list"
            for name in hostname hosts resolv.conf; do : >"$1/etc/$name"; done' \
        trixie "$work/base.tar" "${lines[@]}"
    printf 'FROM scratch\nADD base.tar /\nCMD ["bash"]\n' >"$work/Base"
    echo '{"default": [{"type": "insecureAcceptAnything"}]}' >"$work/policy.json"
    mkdir "$work/base"
    mv "$work/base.tar" "$work/base/"
    image_build -t localhost/base -f "$work/Base" "$work/base"
}

# By the Dockerfile, whose libraries come from this machine's mirror.
make_image() {
    local proxy tree
    says "image of $arch"
    make_base
    proxy=$(debian_proxy)
    image_build --build-arg BASE=localhost/base --build-arg VERSION="$version" \
        ${proxy:+--build-arg "http_proxy=$proxy"} \
        --volume "$work/sources.list:/etc/apt/sources.list:ro" \
        -t "$IMAGE:$version" "$source"
    image_tool push --signature-policy "$work/policy.json" "$IMAGE:$version" \
        "docker-archive:$work/image.tar:$IMAGE:$version"
    tidy_image >"$out/$name-image-$arch.tar"
    tree=$(image_tool mount "$(image_tool from --pull-never \
        --signature-policy "$work/policy.json" "$IMAGE:$version")")
    # shellcheck disable=SC2016 # for dpkg-query
    dpkg-query --admindir "$tree/var/lib/dpkg" -W -f '${Package}\t${Version}\t${Architecture}\n' |
        scripts/bom.py image "$version" "$arch" >"$out/$name-image-$arch.cdx.json"
}

# Without what differs from build to build: the id of a container that is no more, and
# what only Docker before 1.10 reads.
tidy_image() {
    local tree=$work/image config
    mkdir -p "$tree"
    tar -C "$tree" -xf "$work/image.tar"
    config=$(jq -r '.[0].Config' "$tree/manifest.json")
    jq -c 'del(.container, .container_config, .parent) | .config.Hostname = ""' \
        "$tree/$config" >"$work/config.json"
    rm "$tree/$config"
    config=$(sha256sum <"$work/config.json" | cut -c 1-64).json
    mv "$work/config.json" "$tree/$config"
    jq -c --arg config "$config" --arg tag "$IMAGE:$version" \
        '.[0].Config = $config | .[0].RepoTags = [$tag]' "$tree/manifest.json" \
        >"$work/manifest.json"
    mv "$work/manifest.json" "$tree/"
    local layers
    mapfile -t layers < <(jq -r '.[0].Layers[]' "$tree/manifest.json")
    pack "$tree" manifest.json "$config" "${layers[@]}"
}

# ---- signatures and sums -----------------------------------------------------------

# Nothing that builds sees the key: pip and others run what somebody else wrote.
take_key() {
    key=${RELEASE_KEY:-}
    unset RELEASE_KEY
    [ -n "$key" ] || {
        echo "release: nothing is signed, as RELEASE_KEY is not set" >&2
        return
    }
    [[ $key != -----BEGIN* ]] || {
        keys=$(mktemp -d /tmp/redlockd.XXXXXX)
        use_keys --quiet --import <<<"$key"
        key=$(use_keys --with-colons --list-secret-keys |
            awk -F: '$1 == "fpr" {print $10; exit}')
    }
    use_keys --list-secret-keys "$key" >/dev/null ||
        refuse "GnuPG has no secret key for RELEASE_KEY"
    use_keys --export "$key" >"$out/redlockd.gpg"
}

use_keys() { # gpg-option…
    gpg --batch ${keys:+--homedir "$keys"} "$@"
}

sign() { # gpg-option…
    use_keys --yes --quiet --local-user "$key" "$@"
}

# All but signatures and their key.
sum_up() {
    (cd "$out" && find . -type f -not -name SHA256SUMS -not -name InRelease \
        -not -name Release.gpg -not -name redlockd.gpg -printf '%P\n' | sort |
        xargs -d '\n' sha256sum >"$work/SHA256SUMS")
    mv "$work/SHA256SUMS" "$out/"
    [ -z "$key" ] ||
        sign --detach-sign --armor -o "$out/SHA256SUMS.asc" "$out/SHA256SUMS"
}

has_part() {
    [[ " $parts " == *" $1 "* ]]
}

make_all() {
    make_source
    ! has_part source || cp "$work/$name.tar.gz" "$out/"
    ! has_part clients || {
        says "packages of the clients"
        scripts/clients.sh "$out/clients"
    }
    ! has_part packages || make_packages
    ! has_part image || make_image
    scripts/bom.py packages "$version" "$out" >"$work/packages.cdx.json"
    mv "$work/packages.cdx.json" "$out/$name-packages.cdx.json"
    # on the page of a release, a relative link leads nowhere
    notes | sed -E "s|\]\(([^):]+)\)|]($REPOSITORY_URL/blob/v$version/\1)|g" \
        >"$out/NOTES.md"
    sum_up
}

export LC_ALL=C.UTF-8 TZ=UTC
umask 022
may_begin
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
arch=$(dpkg --print-architecture)
mkdir -p build
work=$(mktemp -d "$PWD/build/dist.XXXXXX")
source=$work/$name
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
rm -rf "$out"
mkdir -p "$out"
take_key
exec 3>&1 # for says; the rest is shown if it fails
make_all >"$work/log" 2>&1
echo "$out:"
(cd "$out" && find . -type f -printf '%P\n' | sort)
