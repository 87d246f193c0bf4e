#!/usr/bin/env bash
# Searches one model of this folder with Spin: exhaustively, or, with SHORT=1,
# along random paths. Prints what Spin prints, and in the last line the name of
# the assertion that fell, or "nothing", or what hindered the search.
#   search.sh MODEL [MACRO…]
#
# Random paths begin with the same seeds each time, so that what they find does
# not change; each seed tries short paths first. A table of bits keeps what was
# seen: two states may share a bit, so "nothing" proves little. But a rule that
# is switched off is found far sooner than by breadth.
set -euo pipefail
cd "$(dirname "$0")/../.."
source=$PWD/tests/model/$1.pml
shift
mkdir -p build/model
work=$(mktemp -d build/model/XXXXXX)
trap 'rm -rf "$work"' EXIT

SEEDS=4
DEPTHS=(20 60 200) # of a path, in steps
BITS=22            # of the table's size: 512 KiB

# gcc would warn of what Spin generated
build() { # compiler-option… -- macro…
    local options=()
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    shift
    (cd "$work" && spin -a "${@/#/-D}" "$source" &&
        gcc "${options[@]}" -w -DNOREDUCE -DSAFETY -DNOCLAIM -o pan pan.c)
}

search_all() { # macro…
    local level=-O2 # a search with a rule off ends soon
    [ $# = 0 ] || level=-O1
    build $level -DBFS -DMEMLIM=2000 -- "$@" && (cd "$work" && ./pan)
}

# Ends with the first seed that finds something.
search_paths() { # macro…
    local level=-O0 seed depth
    [ $# -gt 0 ] || level=-O1
    build $level -DBITSTATE -DT_RAND -- "$@" || return
    for ((seed = 1; seed <= SEEDS; seed++)); do
        for depth in "${DEPTHS[@]}"; do
            (cd "$work" &&
                ./pan -w$BITS -m"$depth" -RS$seed >path) || return
            if grep -q 'assertion violated' "$work/path"; then
                break 2
            fi
        done
    done
    cat "$work/path"
}

search=search_all
[ -z "${SHORT:-}" ] || search=search_paths
if ! $search "$@" >"$work/output" 2>&1; then
    found=failed
elif grep -q 'assertion violated' "$work/output"; then
    found=$(sed -n 's/.*assertion violated *!(\([a-z_]*\).*/\1/p' \
        "$work/output")
elif grep -q 'errors: 0' "$work/output" && { [ -n "${SHORT:-}" ] ||
    ! grep -qE 'not completed|too small|memory limit' "$work/output"; }; then
    found=nothing
else
    found="no end"
fi
cat "$work/output"
echo "$found"
