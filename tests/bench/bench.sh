#!/usr/bin/env bash
# Acquire and release on distinct resources, 64 keep-alive clients, five local
# nodes without persistence. SECONDS_RUN, CLIENTS and THREADS change that.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

listen=127.0.0.1:8180
seconds=${SECONDS_RUN:-10}

cpu_us() { # pid: user and system time
    local fields
    read -r -a fields <<<"$(sed 's/.*) //' "/proc/$1/stat")"
    echo $(((fields[11] + fields[12]) * 1000000 / $(getconf CLK_TCK)))
}

answered() {
    curl -s "http://$listen/metrics" |
        awk '/^redlockd_http_requests_answered_total / {printf "%d", $2}'
}

if stack_is_taken "${listen##*:}"; then
    echo "Port ${listen##*:} is taken." >&2
    exit 1
fi
stack_begin
stack_start_nodes 5 7201 --appendonly no
stack_start_server "${REDLOCKD:-build/redlockd}" "$listen" --log-level warn

cpu_before=$(cpu_us "$stack_server")
before=$(answered)
wrk -t "${THREADS:-1}" -c "${CLIENTS:-64}" -d "$seconds" \
    -s tests/bench/lock.lua "http://$listen" | tee "$stack_dir/wrk"
requests=$(($(answered) - before))
cpu=$(($(cpu_us "$stack_server") - cpu_before))
echo
echo "cycles/s:           $((requests / 2 / seconds))"
echo "server CPU/request: $((cpu / (requests > 0 ? requests : 1))) µs"
echo "not 2xx:            $(awk '/Non-2xx/ {print $NF; n = 1}
    END {if (!n) print 0}' "$stack_dir/wrk")"
