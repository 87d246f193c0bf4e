#!/usr/bin/env bash
# pair.sh PERSISTENCE CLIENTS: redlockd and the baseline in turns, PAIRS times,
# SECONDS_RUN seconds each. The nodes behind redlockd persist as told (none,
# everysec or always), those of the baseline never do. With one client the
# baseline's round trips are measured too. Prints a line a run, for report.py:
#   PERSISTENCE CLIENTS PAIR WHAT NAME VALUE…
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/bench/cpu.sh
source tests/bench/cpu.sh

persistence=$1
clients=$2
seconds=${SECONDS_RUN:-3}
listen=127.0.0.1:8180
tools=${TOOLS:-build/release}

run() { # pair what command…
    local pair=$1 what=$2 nodes=$memory_pids out
    shift 2
    [ "$what" != redlockd ] || nodes=$server_pids
    out=$(cpu_around "$stack_server" "$nodes" "$@")
    echo "$persistence $clients $pair $what $out"
}

redlockd() { # pair
    run "$1" redlockd "$tools/load" "$listen" "$clients" "$seconds"
}

baseline() { # pair
    run "$1" baseline "$tools/baseline" "$clients" "$seconds" "${memory[@]}"
    if [ "$clients" = 1 ]; then
        run "$1" trips "$tools/baseline" trips "$seconds" "${memory[@]}"
    fi
}

stack_begin
stack_start_nodes 5 7201 --appendonly no
memory=("${stack_nodes[@]}")
memory_pids=${stack_pids[*]}
server_pids=$memory_pids
if [ "$persistence" != none ]; then
    stack_nodes=()
    stack_start_nodes 10 7211 --appendonly yes --appendfsync "$persistence"
    server_pids=${stack_pids[*]:5}
fi
stack_start_server "${REDLOCKD:-$tools/redlockd}" "$listen" --log-level warn \
    --first-start yes
for pair in $(seq "${PAIRS:-5}"); do
    # now the one, now the other first: what grows hits both
    if [ $((pair % 2)) = 1 ]; then
        redlockd "$pair"
        baseline "$pair"
    else
        baseline "$pair"
        redlockd "$pair"
    fi
done
