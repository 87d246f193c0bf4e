#!/usr/bin/env bash
# A million acquire/release cycles (CYCLES) after a tenth of it as warm-up, in
# runs of 5 s (SECONDS_RUN): the server's memory and descriptors must not grow.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

listen=127.0.0.1:8181
cycles=${CYCLES:-1000000}
seconds=${SECONDS_RUN:-5}
limit_kib=1024
tools=${TOOLS:-build/release}

rss_kib() {
    awk '/^VmRSS/ {print $2}' "/proc/$stack_server/status"
}

# the fewest within a second: the connection that asked last may still close
descriptors() {
    for _ in {1..10}; do
        find "/proc/$stack_server/fd" -mindepth 1 | wc -l
        sleep 0.1
    done | sort -n | head -n 1
}

answered() {
    curl -s "http://$listen/metrics" |
        awk '/^redlockd_http_requests_answered_total / {printf "%d", $2}'
}

# until $1 cycles more are done; clients come and go with each round
load() {
    local from
    from=$(answered)
    while [ $(($(answered) - from)) -lt $(($1 * 2)) ]; do
        "$tools/load" "$listen" 64 "$seconds" | tee "$stack_dir/load"
        grep -q ' failures 0 ' "$stack_dir/load"
    done
}

# what the last clients left behind is closed within a moment
settle() {
    local tries=0
    until [ "$(curl -s "http://$listen/metrics" |
        awk '/^redlockd_connections / {printf "%d", $2}')" = 1 ]; do
        tries=$((tries + 1))
        [ "$tries" -lt 100 ] || break
        sleep 0.1
    done
}

if stack_is_taken "${listen##*:}"; then
    echo "Port ${listen##*:} is taken." >&2
    exit 1
fi
stack_begin
stack_start_nodes 5 7301 --appendonly no
stack_start_server "${REDLOCKD:-$tools/redlockd}" "$listen" --log-level warn \
    --first-start yes

load $((cycles / 10))
settle
rss=$(rss_kib)
fds=$(descriptors)
echo "after the warm-up: RSS $rss KiB, $fds descriptors"
load "$cycles"
settle
echo "at the end:        RSS $(rss_kib) KiB, $(descriptors) descriptors"
[ $(($(rss_kib) - rss)) -lt $limit_kib ]
[ "$(descriptors)" -le "$fds" ]
