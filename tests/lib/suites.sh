#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the suites of a folder, JOBS at a time (three a core, as most of them
# wait). Ends with what failed, and the sum of their last lines, as Check writes
# them.
# CK_RUN_SUITE runs only one, CK_EXCLUDE_TAGS leaves some out, as Check does.
# WITHOUT names suites that do not run, FIRST those that start first, TWICE those
# that run once more with HTTP_TLS=1, and FORKED those whose tests need a process
# each, even with CK_FORK=no. With AGAIN=yes, up to ten suites that failed have a
# second try, one by one: beside others, a test may have been too late. checks/,
# beside the runner, tells how long each test took.
#   suites.sh RUNNER FOLDER
set -euo pipefail
runner=$1
folder=$2
# for tests that set none: Check's 4 s are few where others compile
export CK_DEFAULT_TIMEOUT=${CK_DEFAULT_TIMEOUT:-60}
[ -z "${CK_RUN_SUITE:-}" ] || exec "$runner"

work=$(mktemp -d)
failed=$(mktemp)
trap 'rm -rf "$work" "$failed"' EXIT
times=$(dirname "$runner")/checks/$(basename "$runner")
mkdir -p "$times"
export runner work times failed

# The largest first: most of them take the longest.
list_suites() {
    local name
    find "$folder" '(' -name 'check_*.c' -o -path '*/transcripts/*.txt' ')' \
        -printf '%s %f\n' | sort -rn |
        sed 's/^[0-9]* //; s/^check_//; s/\.[^.]*$//' |
        awk -v first=" ${FIRST:-} " '
            index(first, " " $0 " ") {print; next}
            {rest = rest $0 "\n"}
            END {printf "%s", rest}' |
        while read -r name; do
            [[ " ${WITHOUT:-} " != *" $name "* ]] || continue
            echo "$name"
            [[ " ${TWICE:-} " != *" $name "* ]] || echo "$name+tls"
        done
}

# Shows and keeps what it says; if it fails, its name and its runner's status go
# to failed.
run_suite() {
    export CK_XML_LOG_FILE_NAME=$times/$1.xml CK_RUN_SUITE=${1%+tls}
    [[ $1 != *+tls ]] || export HTTP_TLS=1
    [[ " ${FORKED:-} " != *" $1 "* ]] || unset CK_FORK
    "$runner" >"$work/$1" 2>&1 || echo "$1 $?" >>"$failed"
    cat "$work/$1"
}
export -f run_suite

# Check: file.c:line:F|E|S:case:test:loop: message. A fixture that is killed has
# neither file nor line: (null):-1:S:…
show_failures() {
    grep -hE '^[^ :]+:-?[0-9]+:[FES]:' "$@" || true
}

# Last, so that the end of a log that was cut has them: the end of what the
# suites that failed have said.
show_failed() {
    local name status
    while read -r name status; do
        echo "$name failed, its runner ended with $status:"
        tail -n 40 "$work/$name" | sed 's/^/  /'
    done <"$failed"
}

list_suites | xargs -P "${JOBS:-$((3 * $(nproc)))}" -I {} bash -c 'run_suite {}'
if [ "${AGAIN:-}" = yes ] && [ "$(wc -l <"$failed")" -le 10 ]; then
    mapfile -t again <"$failed"
    : >"$failed"
    for line in "${again[@]}"; do
        read -r name status <<<"$line"
        show_failures "$work/$name" | sed 's/^/second try, because of /'
        echo "second try: $name, alone; its runner ended with $status"
        (run_suite "$name")
    done
fi

show_failures "$work"/*
show_failed
awk -v failed="$(wc -l <"$failed")" '
    /^[0-9]+%: Checks: / {
        gsub(",", "")
        checks += $3; failures += $5; errors += $7
    }
    END {
        if (failed > 0 && failures + errors == 0)
            errors = 1 # one ended without its last line
        good = checks > 0 ? int((checks - failures - errors) * 100 / checks) : 0
        printf "%d%%: Checks: %d, Failures: %d, Errors: %d\n",
            good, checks, failures, errors
    }' "$work"/*
[ ! -s "$failed" ]
