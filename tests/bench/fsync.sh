#!/usr/bin/env bash
# redlockd on nodes that sync each write to the disk, beside what such nodes can
# do at most: redis-benchmark sends bare SETs to one of them, and to all five at
# once, with as many clients each. In turns, PAIRS times, SECONDS_RUN seconds
# each. The runs go to build/bench/fsync.
# CLIENTS changes what is run. With --markdown the table is printed as
# docs/measured.md has it.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

seconds=${SECONDS_RUN:-3}
listen=127.0.0.1:8189
tools=${TOOLS:-build/release}
runs=build/bench/fsync

# How often the node wrote to its file, each time with an fsync: all its writes
# but those of replies. To be asked of nodes that have nothing to do.
fsyncs() { # number of the node
    local all replies
    all=$(awk '/^syscw/ {print $2}' "/proc/${stack_pids[$1]}/io")
    replies=$(redis-cli -p "${stack_nodes[$1]##*:}" info stats |
        awk -F: '/^total_writes_processed/ {print $2 + 0}')
    echo $((all - replies))
}

sets() { # number of the node
    redis-cli -p "${stack_nodes[$1]##*:}" info commandstats |
        awk -F'[=,]' '/^cmdstat_set:/ {n = $2} END {print n + 0}'
}

sum_of() { # function number of a node…
    local node sum=0
    for node in "${@:2}"; do
        sum=$((sum + $("$1" "$node")))
    done
    echo "$sum"
}

times_and_sets() { # number of a node…
    local node
    for node in "$@"; do
        echo "$(($(date +%s%N) / 1000)) $(sets "$node")"
    done
}

# Prints the rate of the slowest node, and the SETs and fsyncs of all of them
# from the start to the end.
bare() { # clients number of a node…
    local clients=$1 node pids=() sets fsyncs
    shift
    sets=$(sum_of sets "$@")
    fsyncs=$(sum_of fsyncs "$@")
    for node in "$@"; do
        stack_spawn redis-benchmark -p "${stack_nodes[$node]##*:}" -t set -q \
            -c "$clients" -n 1000000000 -r 100000 -d 64 >/dev/null 2>&1
        pids+=("$!")
    done
    sleep 0.5
    times_and_sets "$@" >"$stack_dir/before"
    sleep "$seconds"
    times_and_sets "$@" >"$stack_dir/after"
    kill "${pids[@]}"
    wait "${pids[@]}" 2>/dev/null || true
    paste "$stack_dir/before" "$stack_dir/after" |
        awk '{printf "sets_per_s %.0f\n", ($4 - $2) / ($3 - $1) * 1e6}' |
        sort -n -k 2 | head -n 1 | tr '\n' ' '
    echo "sets $(($(sum_of sets "$@") - sets))" \
        "fsyncs $(($(sum_of fsyncs "$@") - fsyncs))"
}

redlockd() { # clients
    local fsyncs out
    fsyncs=$(sum_of fsyncs 0 1 2 3 4)
    out=$("$tools/load" "$listen" "$1" "$seconds")
    echo "$out fsyncs $(($(sum_of fsyncs 0 1 2 3 4) - fsyncs))"
}

run() { # what pair clients
    echo "pair $2, $3 clients: $1 …" >&2
    case $1 in
    one) echo "$* $(bare "$3" $((($2 - 1) % 5)))" ;; # each node in turn
    five) echo "$* $(bare "$3" 0 1 2 3 4)" ;;
    redlockd) echo "$* $(redlockd "$3")" ;;
    esac
}

stack_begin
# no rewriting of the files meanwhile
stack_start_nodes 5 7601 --appendonly yes --appendfsync always \
    --auto-aof-rewrite-percentage 0
stack_start_server "${REDLOCKD:-$tools/redlockd}" "$listen" --log-level error \
    --first-start yes
mkdir -p build/bench
for pair in $(seq "${PAIRS:-5}"); do
    for clients in ${CLIENTS:-1 8 64 256}; do
        # now the one, now the other first: what grows hits all
        order=(one redlockd five)
        [ $((pair % 2)) = 1 ] || order=(five redlockd one)
        for what in "${order[@]}"; do
            run "$what" "$pair" "$clients"
        done
    done
done >"$runs"
tests/bench/fsync.py "$@" "$runs"
