#!/usr/bin/env bash
# Acquire and release on distinct resources: redlockd over HTTP beside the
# Redlock page done literally, on five local nodes each. A row a persistence and
# number of clients; then half the peak with nodes stopped. The runs go to
# build/bench/runs, the plot to build/bench/bench.png.
# SECONDS_RUN, PAIRS, PERSISTENCE, CLIENTS change what is run.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

if stack_is_taken 8180; then
    echo "Port 8180 is taken." >&2
    exit 1
fi
mkdir -p build/bench
: >build/bench/runs
for persistence in ${PERSISTENCE:-none everysec always}; do
    for clients in ${CLIENTS:-1 8 64 256}; do
        echo "$clients clients, AOF $persistence …" >&2
        tests/bench/pair.sh "$persistence" "$clients" >>build/bench/runs
    done
done
echo "nodes stopped …" >&2
tests/bench/paused.sh >>build/bench/runs
export PYTHONDONTWRITEBYTECODE=1
tests/bench/report.py build/bench/runs build/bench/bench.png
