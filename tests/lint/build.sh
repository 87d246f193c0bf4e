#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What the Makefile promises. A new VERSION reaches the binary: each file that
# names it is built anew. The binaries are hardened.
set -euo pipefail
cd "$(dirname "$0")/../.."

failed=0
plan=$(make --no-print-directory -n -W VERSION V=1 \
    FLAVOUR=release build)
while IFS= read -r file; do
    grep -q -- "-o build/release/${file%.c}.o" <<<"$plan" || {
        echo "Makefile: a new VERSION does not rebuild $file"
        failed=1
    }
done < <(grep -rl --include='*.c' REDLOCKD_VERSION server api cli)

has() { # binary what readelf-option pattern
    readelf -W "$3" "$1" 2>/dev/null |
        grep -E "$4" >/dev/null || {
        echo "$1: not $2"
        failed=1
    }
}

for binary in build/release/redlockd build/release/redlockctl; do
    has "$binary" "position independent" -h 'Type: +DYN'
    has "$binary" "bound at the start" -d 'FLAGS.*NOW'
    has "$binary" "read-only after relocation" -l GNU_RELRO
    has "$binary" "with guarded stacks" -s __stack_chk_fail
    has "$binary" "with checked copies" -s '__[a-z]+_chk(@|$)'
done
# the whole binary is only marked so if each library that it begins with is
[ "$(uname -m)" != x86_64 ] ||
    has build/release/server/main.o "with guarded branches" -n 'IBT, SHSTK'
exit "$failed"
