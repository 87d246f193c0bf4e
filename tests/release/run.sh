#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# `make release` as a maintainer runs it, twice, in two clones of the last commit: both
# have the same bytes, the first one with signatures. Then each file of the first is
# used as its users do: installed, and a lock taken with it from a real server over five
# Redis masters. Needs root, Docker and a Debian 12 or 13.
# DIST=FOLDER takes files that are there, and makes none; PARTS="clients image" tests
# some. With --check it only looks whether it could, and what release.sh refuses.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/debian.sh
source scripts/debian.sh
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/lib/checks.sh
source tests/lib/checks.sh
# shellcheck source=tests/release/systems.sh
source tests/release/systems.sh
# shellcheck source=tests/release/clients.sh
source tests/release/clients.sh

dir=$PWD/build/release-test
root=$PWD
commit=$(git rev-parse HEAD) # all clones have it, whatever is committed meanwhile
version=$(cat VERSION)
arch=$(dpkg --print-architecture)
parts=${PARTS:-source clients packages image}
dist=$dir/once
listen=''   # of the server that the clients use
url=''
keys=''     # of GnuPG

clean_up() {
    systems_end
    stack_end
    [ -z "$keys" ] || {
        GNUPGHOME=$keys gpgconf --kill all
        rm -rf "$keys"
    }
    rm -rf "$dir"/clone-*
}

has_part() {
    [[ " $parts " == *" $1 "* ]]
}

# ---- how it is made -----------------------------------------------------------------

clone() { # name
    rm -rf "$dir/clone-$1"
    git clone -q . "$dir/clone-$1"
    git -C "$dir/clone-$1" reset -q --hard "$commit"
    mkdir -p "$dir/clone-$1/build" build/debian
    ln -s "$PWD/build/debian" "$dir/clone-$1/build/debian" # bare trees are made once
}

release() { # clone folder [VERSION]
    PARTS=$parts "$dir/clone-$1/scripts/release.sh" "${3:-$version}" "$2"
}

refuses_another_version() {
    clone refused || return
    ! release refused "$dir/refused" 99.0.0 2>"$dir/said" &&
        grep "VERSION=99.0.0 is not the version" "$dir/said" &&
        [ ! -e "$dir/refused" ]
}

refuses_what_is_not_committed() {
    touch "$dir/clone-refused/new"
    ! release refused "$dir/refused" 2>"$dir/said" &&
        grep -x '?? new' "$dir/said" && [ ! -e "$dir/refused" ]
}

# What the sources of a release are, unpacked inside of another clone.
refuses_what_is_no_clone() {
    local inside=$dir/clone-refused/build/inside
    mkdir "$inside"
    git archive HEAD | tar -C "$inside" -x
    ! PARTS=source "$inside/scripts/release.sh" "$version" "$dir/refused" \
        2>"$dir/said" && grep 'this is no clone' "$dir/said" &&
        [ ! -e "$dir/refused" ] || return
    ! "$inside/scripts/clients.sh" "$dir/refused" 2>"$dir/said" &&
        grep 'this is no clone' "$dir/said" && [ ! -e "$dir/refused" ]
}

refuses_a_version_without_notes() {
    rm "$dir/clone-refused/new"
    sed -i "/^## /d" "$dir/clone-refused/CHANGELOG.md"
    git -C "$dir/clone-refused" -c user.name=x -c user.email=x commit -qam notes
    ! release refused "$dir/refused" 2>"$dir/said" &&
        grep 'CHANGELOG.md has no section' "$dir/said" && [ ! -e "$dir/refused" ]
}

refuses_the_folder_of_something_else() {
    local parts=source
    mkdir "$dir/mine"
    touch "$dir/mine/thesis"
    ! release refused "$dir/mine" 2>"$dir/said" && grep 'it has thesis' "$dir/said" &&
        [ -e "$dir/mine/thesis" ] || return
    ! release refused "$dir/clone-refused" 2>"$dir/said" &&
        grep 'not the folder of a release' "$dir/said" && [ -e "$dir/clone-refused/.git" ]
}

workflow_refuses() {
    mkdir "$dir/workflow"
    tests/release/workflow.py "$dir/workflow"
}

check_refusals() {
    check "another version than that of the file is refused" refuses_another_version
    check "a folder that has something else is refused" \
        refuses_the_folder_of_something_else
    check "a file that is not committed is refused" refuses_what_is_not_committed
    check "sources that are no clone are refused" refuses_what_is_no_clone
    check "a version without release notes is refused" refuses_a_version_without_notes
    check "the workflow refuses other tags, and names of another repository" \
        workflow_refuses
}

make_key() {
    keys=$(mktemp -d)
    GNUPGHOME=$keys gpg --batch --quiet --passphrase '' --quick-gen-key \
        'A test of redlockd <test@localhost>' ed25519 sign never
}

secret_key() {
    GNUPGHOME=$keys gpg --batch --armor --export-secret-keys
}

# In a folder whose path is too long for the sockets of GnuPG. gzip tells what those
# can read that build.
keeps_the_key_to_itself() {
    local long
    long=long-$(printf 'x%.0s' {1..100})
    mkdir -p "$dir/spy"
    cat >"$dir/spy/gzip" <<END
#!/bin/sh
env >>"$dir/seen"
exec /usr/bin/gzip "\$@"
END
    chmod +x "$dir/spy/gzip"
    clone "$long" && PATH=$dir/spy:$PATH PARTS=source RELEASE_KEY=$(secret_key) \
        "$dir/clone-$long/scripts/release.sh" "$version" "$dir/signed" || return
    gpgv --keyring "$dir/signed/redlockd.gpg" "$dir/signed/SHA256SUMS.asc" \
        "$dir/signed/SHA256SUMS" &&
        grep -q ^SOURCE_DATE_EPOCH= "$dir/seen" &&
        ! grep -E 'PRIVATE KEY|^RELEASE_KEY=|^GNUPGHOME=' "$dir/seen"
}

check_key() {
    check_or_end "a key is made" make_key
    check "only GnuPG sees the key, wherever the clone is" keeps_the_key_to_itself
    check "its notes have links that lead somewhere" has_notes "$dir/signed"
}

makes_a_signed_release() {
    clone once && RELEASE_KEY=$(secret_key) release once "$dir/once"
}

# By somebody else, as it were: with other rights of files, and another time zone.
makes_it_again() {
    clone again || return
    chgrp games "$dir/clone-again/build"
    chmod g+s "$dir/clone-again/build"
    (umask 077 && TZ=Asia/Tokyo RELEASE_KEY='' release again "$dir/again")
}

are_the_same() {
    diff "$dir/once/SHA256SUMS" "$dir/again/SHA256SUMS" &&
        (cd "$dir/again" && sha256sum --quiet -c SHA256SUMS)
}

# ---- what there is --------------------------------------------------------------------

has_the_right_sums() {
    (cd "$dist" && sha256sum --quiet -c SHA256SUMS) || return
    [ ! -e "$dist/SHA256SUMS.asc" ] ||
        gpgv --keyring "$dist/redlockd.gpg" "$dist/SHA256SUMS.asc" "$dist/SHA256SUMS"
}

has_notes() { # folder
    grep . "$1/NOTES.md" && ! grep '^## ' "$1/NOTES.md" &&
        grep -qF "$(grep . "$1/NOTES.md" | head -n 1)" CHANGELOG.md &&
        ! grep -E '\]\([^):]*\)' "$1/NOTES.md" || return
    # each link leads to a page of this version
    grep -oE '/blob/[^)#]*' "$1/NOTES.md" | while read -r link; do
        [[ $link == /blob/v$version/* ]] && [ -e "${link#/blob/v"$version"/}" ] || return
    done
}

# By the library of CycloneDX, which has the schema.
bills_are_valid() {
    python3 -m venv "$dir/bills"
    "$dir/bills/bin/pip" install -q --disable-pip-version-check \
        -r tests/release/requirements.txt || return
    "$dir/bills/bin/python3" tests/release/bills.py "$dist"
}

# ---- the server, from the archive of binaries --------------------------------------------

free_port() {
    PYTHONPATH=tests/lib PYTHONDONTWRITEBYTECODE=1 python3 -c 'import ports
print(*ports.free_ports(1))'
}

# The binaries for this machine, if they were made; else those of this clone.
begin_server() {
    local number binary=build/release/redlockd
    if has_part packages; then
        number=$(. /etc/os-release && echo "$VERSION_ID")
        rm -rf "$dir/binaries"
        mkdir "$dir/binaries"
        tar -C "$dir/binaries" --strip-components 1 \
            -xf "$dist/redlockd-$version-debian$number-$arch.tar.gz"
        binary=$dir/binaries/usr/bin/redlockd
    fi
    listen=127.0.0.1:$(free_port)
    url=http://$listen
    stack_start_nodes 5 7901 --appendonly yes --appendfsync always
    stack_start_server "$binary" "$listen"
}

builds_from_its_source() {
    rm -rf "$dir/source"
    mkdir "$dir/source"
    tar -C "$dir/source" --strip-components 1 -xf "$dist/redlockd-$version.tar.gz"
    make -C "$dir/source" -j"$(nproc)" build &&
        "$dir/source/build/redlockd" --version | grep -F "$version" &&
        "$dir/source/build/redlockctl" run --url "$url" release:source -- true
}

# ------------------------------------------------------------------------------------------

check_release() {
    if [ -z "${DIST:-}" ]; then
        check_refusals
        check_key
        check_or_end "a release is made and signed" makes_a_signed_release
        check_or_end "it is made again, from another clone" makes_it_again
        check "both have the same bytes" are_the_same
    fi
    check "its sums are right" has_the_right_sums
    check "its notes are those of CHANGELOG.md" has_notes "$dist"
    check "its bills of materials are valid, and complete" bills_are_valid
    check_or_end "a server starts" begin_server
    ! has_part source || check "its source builds" builds_from_its_source
    ! has_part clients || check_clients
    ! has_part packages || check_packages
    ! has_part image || check_image
}

case ${1:-} in
--check)
    scripts/deps.sh release
    checks_begin clean_up
    mkdir -p "$dir"
    check "each check is defined" checks_exist check_release check_refusals \
        check_key check_clients check_packages check_image
    check_refusals
    check_key
    ;;
*)
    scripts/deps.sh run release go php ruby java rust
    rm -rf "$dir"
    mkdir -p "$dir"
    stack_begin
    checks_begin clean_up
    [ -z "${DIST:-}" ] || dist=$(realpath "$DIST")
    check_release
    ;;
esac
