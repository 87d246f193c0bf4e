#!/usr/bin/env bash
# How redlockd's speed changes with the number of clients, of servers that share
# a port, and with the distance of the nodes; in turns, PAIRS times, SECONDS_RUN
# seconds each. The runs go to build/bench/scale, the plot to
# build/bench/scale.png.
# CLIENTS, SERVERS, DISTANCES_MS and CLIENTS_FEW (with several servers, or with
# distance) change what is run; empty: nothing of it. With --markdown the tables
# are printed as docs/measured.md has them.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

seconds=${SECONDS_RUN:-3}
tools=${TOOLS:-build/release}
redlockd=${REDLOCKD:-$tools/redlockd}
runs=build/bench/scale
# 64 and 10,000 are compared: the one right after the other
read -r -a crowds <<<"${CLIENTS-1 8 256 1000 4000 64 10000}"
read -r -a few <<<"${CLIENTS_FEW-64 1000 10000}"
read -r -a servers <<<"${SERVERS-1 2 4}"
read -r -a distances <<<"${DISTANCES_MS-direct 0 1 10}"
port=8190 # and those behind it: of the servers
declare -A pids # how many servers, or far: their pids, with commas

# name host:port option…: one more of the servers that are called so
start_server() {
    stack_start_server "$redlockd" "$2" --log-level error "${@:3}"
    stack_pids=("$stack_server" "${stack_pids[@]}") # ends before the nodes
    pids[$1]=${pids[$1]:+${pids[$1]},}$stack_server
}

# count: servers that share a port; only the first says when all are ready
start_servers() {
    local listen=127.0.0.1:$((port + $1)) started=0 answers=0
    if stack_is_taken "${listen##*:}"; then
        echo "Port ${listen##*:} is taken." >&2
        exit 1
    fi
    while [ "$started" -lt "$1" ]; do
        start_server "$1" "$listen" --reuse-port on --first-start yes
        started=$((started + 1))
    done
    # the kernel deals new connections out at random
    while [ "$answers" -lt 40 ]; do
        answers=$((answers + 1))
        curl -fs -o /dev/null "http://$listen/readyz" || answers=0
    done
}

# Five ways to the nodes on which replies are late, and a server behind them. It
# has keys of its own, as it knows the nodes by other names.
start_far() {
    local ways near=("${stack_nodes[@]}")
    coproc proxy {
        exec setsid setpriv --pdeathsig KILL -- \
            "$tools/nemesis-proxy" 1 "${stack_nodes[@]##*:}"
    }
    stack_pids=("$proxy_PID" "${stack_pids[@]}")
    pids[proxy]=$proxy_PID
    exec {commands}>&"${proxy[1]}" {answers}<&"${proxy[0]}"
    read -r -a ways <&"$answers"
    stack_nodes=("${ways[@]/#/127.0.0.1:}")
    start_server far "127.0.0.1:$port" --first-start yes --key-prefix far:
    stack_nodes=("${near[@]}")
}

set_distance() { # ms
    local node
    for node in 0 1 2 3 4; do
        echo "delay 0 $node 1 $1 0"
    done >&"$commands"
    echo sync >&"$commands"
    read -r <&"$answers"
}

run() { # label servers port clients
    local label=$1 out
    echo "$label, $4 clients …" >&2
    out=$("$tools/load" -c "server=${pids[$2]}" -c "nodes=$node_pids" \
        -c "proxy=${pids[proxy]}" -c generator=0 "127.0.0.1:$3" "$4" "$seconds")
    echo "$label $4 seconds $seconds $out"
}

in_turns() { # pair word…: what grows hits the last, in even pairs the first
    if [ $(($1 % 2)) = 1 ]; then
        printf '%s\n' "${@:2}"
    else
        printf '%s\n' "${@:2}" | tac
    fi
}

stack_begin
stack_start_nodes 5 7501 --appendonly no
node_pids=$(IFS=, && echo "${stack_pids[*]}")
for count in $(printf '%s\n' 1 "${servers[@]}" | sort -nu); do
    start_servers "$count"
done
start_far
mkdir -p build/bench
for pair in $(seq "${PAIRS:-5}"); do
    for clients in $(in_turns "$pair" "${crowds[@]}"); do
        run "clients $pair 1" 1 "$((port + 1))" "$clients"
    done
    for clients in "${few[@]}"; do
        for count in $(in_turns "$pair" "${servers[@]}"); do
            run "servers $pair $count" "$count" "$((port + count))" "$clients"
        done
        for distance in $(in_turns "$pair" "${distances[@]}"); do
            if [ "$distance" = direct ]; then
                run "distance $pair direct" 1 "$((port + 1))" "$clients"
            else
                set_distance "$distance"
                run "distance $pair $distance" far "$port" "$clients"
            fi
        done
    done
done >"$runs"
tests/bench/scale.py "$@" "$runs" "$runs.png"
