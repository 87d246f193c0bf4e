#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs the fuzzers of a folder, two at a time: each over its corpus, and then on
# from there and from what earlier runs have found, for FUZZ_SECONDS (60), with
# libFuzzer's random numbers from SEED, a new one each time. FUZZERS="id json"
# picks some. What a fuzzer finds is kept by adding it to the corpus.
#   run.sh FOLDER
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/lib/checks.sh
source tests/lib/checks.sh

fuzzers=$1
export work=build/fuzz/work findings=build/fuzz/findings fuzzers
export FUZZ_SECONDS=${FUZZ_SECONDS:-60}
# libFuzzer takes 32 bits; to it, 0 is none
export SEED=${SEED:-$(($(date +%s%N) / 1000 % 1000000000 + 1))}
export ASAN_OPTIONS=quarantine_size_mb=16 UBSAN_OPTIONS=print_stacktrace=1
mkdir -p "$work" "$findings"

run() { # name
    mkdir -p "$work/$1"
    touch "$work/$1.begun"
    "$fuzzers/$1" -seed="$SEED" -max_total_time="$FUZZ_SECONDS" -timeout=10 \
        -rss_limit_mb=1024 -print_final_stats=1 \
        -artifact_prefix="$findings/$1-" \
        "$work/$1" "tests/fuzz/corpus/$1" >"$work/$1.log" 2>&1
    echo $? >"$work/$1.status"
}
export -f run

# What to do with what a fuzzer found.
advise() { # name
    local found
    find "$findings" -name "$1-*" -newer "$work/$1.begun" | while read -r found; do
        echo "found with SEED=$SEED, maybe not by your change;"
        echo "replay with $fuzzers/$1 $found"
        echo "keep it with cp $found tests/fuzz/corpus/$1/"
    done
}

# What a fuzzer said at its end; its inputs count as it counts them.
report() { # name
    local name=$1 executions
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' \
        "$work/$name.log")
    echo "${executions:-0} executions"
    grep -vE '^(#[0-9]+|NEW_FUNC|INFO:)' "$work/$name.log" | head -n 30
    advise "$name"
    [ "$(cat "$work/$name.status")" = 0 ] && [ -n "$executions" ]
}

names=${FUZZERS:-$(cd tests/fuzz && printf '%s\n' fuzz_*.c |
    sed 's/fuzz_\(.*\)\.c/\1/')}
echo "SEED=$SEED plays the same random numbers again"
checks_begin true
for name in $names; do
    rm -f "$work/$name.status"
done
# shellcheck disable=SC2016,SC2086
printf '%s\n' $names | xargs -P 2 -I '{}' bash -c 'run "$1"' fuzz '{}'
for name in $names; do
    check "$name, $(report "$name" | head -n 1)" report "$name"
done
