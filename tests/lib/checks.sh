# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# To be sourced: counts checks, cleans up, and ends with "N passed, N failed".

checks_passed=0
checks_failed=0
checks_clean_up=true # a command

checks_begin() { # command that cleans up
    checks_clean_up=$1
    trap checks_end EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
}

# Runs a command in this shell; its output is shown if it fails.
check() { # what command…
    local what=$1 output
    shift
    output=$(mktemp)
    if "$@" >"$output" 2>&1; then
        checks_passed=$((checks_passed + 1))
        echo "ok    $what"
    else
        checks_failed=$((checks_failed + 1))
        echo "FAIL  $what"
        uniq "$output" | tail -n 40 | sed 's/^/      /'
    fi
    rm "$output"
}

# Whether each check in these functions names a command that there is, for
# scripts that take too long to be run after each change.
checks_exist() { # function…
    local name count=0
    while read -r name; do
        count=$((count + 1))
        type "$name" || return
    done < <(declare -f "$@" |
        sed -nE 's/^ *check(_or_end)? "[^"]*" ([a-z_]+).*/\2/p')
    [ "$count" -gt 0 ]
}

# Where nothing makes sense after a failure.
check_or_end() { # what command…
    local before=$checks_failed
    check "$@"
    [ "$checks_failed" -eq "$before" ] || exit 1
}

# A script that ends before its last check has failed, whatever it counted.
checks_end() {
    local status=$?
    trap '' INT TERM HUP
    "$checks_clean_up"
    if [ "$checks_failed" -eq 0 ] &&
        { [ "$status" -ne 0 ] || [ "$checks_passed" -eq 0 ]; }; then
        echo "FAIL  ended early, with status $status"
        checks_failed=$((checks_failed + 1))
    fi
    echo "$checks_passed passed, $checks_failed failed"
    [ "$checks_failed" -eq 0 ] || exit 1
}

# Until the command succeeds: four times a second, at most so long.
eventually() { # seconds command…
    local until=$((SECONDS + $1))
    shift
    until "$@"; do
        if [ "$SECONDS" -ge "$until" ]; then
            echo "in vain: $*"
            return 1
        fi
        sleep 0.25
    done
}
