#!/usr/bin/env bash
# Clients that want the same locks: they wait in redlockd, or poll. On one server
# and on two, in turns, PAIRS times, SECONDS_RUN seconds each; beside one client
# alone, whose requests show the round trip. The runs go to
# build/bench/contention, the plot to build/bench/contention.png.
# CLIENTS, HOLDS_US, MODES and SERVERS change what is run; CLIENTS_TWO: how many
# clients besides, on two servers; CLIENTS_EIGHT: how many on eight locks.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/bench/cpu.sh
source tests/bench/cpu.sh

seconds=${SECONDS_RUN:-2}
tools=${TOOLS:-build/release}
redlockd=${REDLOCKD:-$tools/redlockd}
runs=build/bench/contention
modes=${MODES:-wait 100-200 10-10}
# of each kind two servers: whoever polls has some of its own, whose nodes no
# longer announce anything for those that waited before
waiting=(127.0.0.1:8183 127.0.0.1:8184)
polling=(127.0.0.1:8185 127.0.0.1:8186)
declare -A pids # host:port: pid

start_server() { # host:port option…
    if stack_is_taken "${1##*:}"; then
        echo "Port ${1##*:} is taken." >&2
        exit 1
    fi
    stack_start_server "$redlockd" "$1" --log-level error "${@:2}"
    stack_pids=("$stack_server" "${stack_pids[@]}") # ends before the nodes
    pids[$1]=$stack_server
}

# What the nodes were asked: batches, and all commands, those of scripts too.
commands() {
    local node
    for node in "${stack_nodes[@]}"; do
        redis-cli -p "${node##*:}" info commandstats
        redis-cli -p "${node##*:}" info stats
    done | tr -d '\r' | awk -F'[=:,]' '
        /^cmdstat_evalsha:/ {batches += $3}
        /^total_commands_processed:/ {commands += $2}
        END {print batches + 0, commands + 0}'
}

rounds() { # host:port…: acquires that were sent to the nodes
    local server
    for server in "$@"; do
        curl -s "http://$server/metrics"
    done | awk '/^redlockd_round_duration_seconds_count{operation="acquire"}/ {
        sum += $NF} END {print sum + 0}'
}

all_pids() { # host:port…
    local server
    for server in "$@"; do
        echo "${pids[$server]}"
    done
}

# A line with the label, what the command prints, and what it costs the servers.
run() { # label host:port,… command…
    local label=$1 servers batches sent asked before out
    read -r -a servers <<<"${2//,/ }"
    shift 2
    read -r -a before <<<"$(commands)"
    asked=$(rounds "${servers[@]}")
    out=$(cpu_around "$(all_pids "${servers[@]}")" "${node_pids[*]}" "$@")
    read -r batches sent <<<"$(commands)"
    echo "$label $out batches $((batches - before[0]))" \
        "commands $((sent - before[1]))" \
        "rounds $(($(rounds "${servers[@]}") - asked))"
}

contend() { # pair servers resources hold_us clients mode
    local used=("${polling[@]:0:$2}")
    [ "$6" != wait ] || used=("${waiting[@]:0:$2}")
    run "$*" "$(IFS=,; echo "${used[*]}")" \
        "$tools/contention" "$6" "$5" "$3" "$4" "$seconds" "${used[@]}"
}

alone() { # pair servers hold_us: nobody else wants the lock
    run "$1 $2 1 $3 1 alone" "${waiting[0]}" \
        "$tools/contention" 0-0 1 1 "$3" "$seconds" "${waiting[0]}"
}

in_turns() { # pair servers resources hold_us clients
    local mode order
    # each is the first in turn: what grows hits all
    read -r -a order <<<"$modes $modes"
    for mode in "${order[@]:$1 % (${#order[@]} / 2):${#order[@]} / 2}"; do
        contend "$@" "$mode"
    done
}

stack_begin
stack_start_nodes 5 7401 --appendonly no
node_pids=("${stack_pids[@]}")
start_server "${waiting[0]}" --first-start yes
start_server "${waiting[1]}"
start_server "${polling[0]}" --key-prefix polls: --first-start yes
start_server "${polling[1]}" --key-prefix polls:
mkdir -p build/bench
run "0 2 1 0 0 idle" "${waiting[0]}" sleep "$seconds" >"$runs"
for pair in $(seq "${PAIRS:-3}"); do
    for servers in ${SERVERS:-1 2}; do
        extra=$([ "$servers" = 1 ] || echo "${CLIENTS_TWO-32}")
        for hold in ${HOLDS_US:-0 1000}; do
            alone "$pair" "$servers" "$hold"
            for clients in ${CLIENTS:-2 16 128} $extra; do
                echo "$pair: $clients clients, $hold µs, $servers server(s) …" >&2
                in_turns "$pair" "$servers" 1 "$hold" "$clients"
            done
        done
        for clients in ${CLIENTS_EIGHT-16 128}; do
            echo "$pair: $clients clients, eight locks, $servers server(s) …" >&2
            in_turns "$pair" "$servers" 8 1000 "$clients"
        done
    done
done >>"$runs"
tests/bench/contention.py "$runs" "$runs.png"
