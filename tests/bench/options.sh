#!/usr/bin/env bash
# options.sh CLIENTS OPTION…: redlockd with these options and without, in turns
# over the same nodes, PAIRS times (3), SECONDS_RUN seconds each (5). Prints a
# line a run, then the medians of the pairs' ratios. PORT (8180) is the first of
# seven.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

clients=$1
shift
tools=${TOOLS:-build/release}
without=127.0.0.1:${PORT:-8180} with=127.0.0.1:$((${PORT:-8180} + 1))

start() { # listen option…
    stack_start_server "${REDLOCKD:-$tools/redlockd}" "$1" --log-level warn \
        --first-start yes "${@:2}"
    servers+=("$stack_server")
}

end() {
    kill "${servers[@]}" 2>/dev/null || true
    wait "${servers[@]}" 2>/dev/null || true
    stack_server=''
    stack_end
}

run() { # pair what pid listen
    local out
    out=$("$tools/load" -c "server=$3" "$4" "$clients" \
        "${SECONDS_RUN:-5}")
    echo "$1 $2 $out"
}

servers=()
stack_begin
trap end EXIT
stack_start_nodes 5 $((${PORT:-8180} + 2)) --appendonly no
start "$without" --drain-ms 0
start "$with" --drain-ms 0 "$@"
for pair in $(seq "${PAIRS:-3}"); do
    # now the one, now the other first: what grows hits both
    if [ $((pair % 2)) = 1 ]; then
        run "$pair" without "${servers[0]}" "$without"
        run "$pair" with "${servers[1]}" "$with"
    else
        run "$pair" with "${servers[1]}" "$with"
        run "$pair" without "${servers[0]}" "$without"
    fi
done | python3 tests/bench/ratios.py
