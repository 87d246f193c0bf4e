#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Searches one model of this folder exhaustively with Spin. Prints what Spin
# prints, and in the last line the name of the assertion that fell, or
# "nothing", or what hindered the search.
#   search.sh MODEL [MACRO…]
# SHORT=1: the search is so short that compiling would cost the most.
set -euo pipefail
cd "$(dirname "$0")/../.."
source=$PWD/tests/model/$1.pml
shift
level=-O2 # a search with a rule off ends soon
[ $# = 0 ] || level=-O1
compiler=gcc
slots=24 # 2^24 in the table of states; clearing it takes a while
if [ -n "${SHORT:-}" ]; then
    level=-O0
    slots=20
    ! command -v clang >/dev/null || compiler=clang # a third less time
fi
mkdir -p build/model
work=$(mktemp -d build/model/XXXXXX)
trap 'rm -rf "$work"' EXIT

# they would warn of what Spin generated
if ! (cd "$work" && spin -a "${@/#/-D}" "$source" &&
    "$compiler" "$level" -w -DBFS -DNOREDUCE -DSAFETY -DNOCLAIM -DMEMLIM=2000 \
        -o pan pan.c &&
    ./pan -w$slots) >"$work/output" 2>&1; then
    found=failed
elif grep -q 'assertion violated' "$work/output"; then
    found=$(sed -n 's/.*assertion violated *!(\([a-z_]*\).*/\1/p' \
        "$work/output")
elif grep -q 'errors: 0' "$work/output" &&
    ! grep -qE 'not completed|too small|memory limit' "$work/output"; then
    found=nothing
else
    found="no end"
fi
cat "$work/output"
echo "$found"
