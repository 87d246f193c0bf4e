#!/usr/bin/env bash
# Half the peak rate of 64 clients, begun by the clock, with all nodes, with one
# and with two of five stopped, in turns, PAIRS times. Prints as pair.sh does.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/bench/cpu.sh
source tests/bench/cpu.sh

seconds=${SECONDS_RUN:-3}
listen=127.0.0.1:8180
tools=${TOOLS:-build/release}

voting() {
    curl -s "http://$listen/metrics" |
        awk '/^redlockd_node_voting/ {n += $NF} END {print n + 0}'
}

resume() {
    local tries=0
    kill -CONT "${stack_pids[@]}"
    until [ "$(voting)" = 5 ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || exit 1
        sleep 0.1
    done
}

stack_begin
stack_start_nodes 5 7201 --appendonly no
stack_start_server "${REDLOCKD:-$tools/redlockd}" "$listen" --log-level error \
    --first-start yes
read -r -a peak <<<"$("$tools/load" "$listen" 64 "$seconds")"
rate=$((peak[1] / 2))
for pair in $(seq "${PAIRS:-5}"); do
    for stopped in 0 1 2; do
        resume
        [ "$stopped" = 0 ] || kill -STOP "${stack_pids[@]:0:stopped}"
        out=$(cpu_around "$stack_server" "${stack_pids[*]}" \
            "$tools/load" "$listen" 64 "$seconds" "$rate")
        echo "none 64 $pair stopped$stopped $out rate $rate"
    done
done
resume
