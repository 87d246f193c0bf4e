#!/usr/bin/env bash
# redlockd beside other lock clients, in pairs of alternating runs, over the same
# five nodes without persistence:
#   rslock      the Rust library
#   aioredlock  the Python library
#   baseline    the Redlock page done literally, in C
#   etcd        not Redlock: its own lock service, by its HTTP gateway. One
#               member is its best case, as nothing has to be replicated; it
#               fsyncs each write, which is its default.
# The runs go to build/bench/peers/runs, the plot to build/bench/peers.png.
# The clients of a run are tasks or threads of one process. PROCESSES="8 64" runs
# that many processes instead, each with one client; without PEERS, only beside
# rslock and the baseline.
# SECONDS_RUN, PAIRS, CLIENTS and PEERS change what is run; REDLOCKD names
# another binary, PORT the first of 100 ports. peers.py --markdown prints a table
# of the same runs for the docs. rslock needs a cargo of 1.85 or newer.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/bench/cpu.sh
source tests/bench/cpu.sh
# shellcheck source=tests/lib/libraries.sh
source tests/lib/libraries.sh

seconds=${SECONDS_RUN:-3}
tools=${TOOLS:-build/release}
port=${PORT:-7501}
listen=127.0.0.1:$((port + 80))
etcd=127.0.0.1:$((port + 90))
etcd_peer=127.0.0.1:$((port + 91))
etcd_pid=''
dir=build/bench/peers
from=tests/bench/peers
if [ -n "${PROCESSES:-}" ]; then
    : "${PEERS:=rslock baseline}"
else
    : "${PEERS:=rslock aioredlock baseline etcd}"
fi

# Without a cargo that builds rslock, the others are measured.
install_peers() {
    local peer peers=()
    for peer in $PEERS; do
        case $peer in
        rslock) libraries_rust "$dir/rslock" "$from/rslock" rslock-bench || continue ;;
        aioredlock) libraries_python "$dir" "$from/requirements.txt" ;;
        baseline | etcd) ;;
        *)
            echo "There is no peer $peer." >&2
            exit 2
            ;;
        esac
        peers+=("$peer")
    done
    PEERS=${peers[*]}
}

etcd_is_healthy() {
    curl -fs "http://$etcd/health" | grep -q '"true"'
}

start_etcd() {
    stack_spawn etcd --data-dir "$stack_dir/etcd" --logger zap \
        --log-level error --initial-cluster "default=http://$etcd_peer" \
        --listen-client-urls "http://$etcd" \
        --advertise-client-urls "http://$etcd" \
        --listen-peer-urls "http://$etcd_peer" \
        --initial-advertise-peer-urls "http://$etcd_peer" \
        >"$stack_dir/etcd.log" 2>&1
    etcd_pid=$!
    stack_pids+=("$etcd_pid")
    if ! stack_until 200 etcd_is_healthy; then
        cat "$stack_dir/etcd.log" >&2
        exit 1
    fi
}

# It works a bit even while nobody asks it.
stop_etcd() {
    kill "$etcd_pid"
    wait "$etcd_pid" || true
    unset 'stack_pids[-1]'
    rm -rf "$stack_dir/etcd"
}

count_keys() { # what
    if [ "$1" = etcd ]; then
        # those from `bench:` to `bench;`
        curl -fs "http://$etcd/v3/kv/range" -d '{"count_only": true,
            "key": "YmVuY2g6", "range_end": "YmVuY2g7"}' |
            sed 's/.*"count":"\([0-9]*\)".*/\1/; t; s/.*/0/'
        return
    fi
    for node in "${stack_nodes[@]}"; do
        redis-cli -p "${node##*:}" --scan --pattern 'bench:*'
    done | wc -l
}

# Releases that nobody waits for are done within a moment.
count_left() { # what
    local tries=0
    until [ "$(count_keys "$1")" = 0 ] || [ "$tries" = 20 ]; do
        tries=$((tries + 1))
        sleep 0.05
    done
    count_keys "$1"
}

run() { # pair peer what
    local servers='' nodes=$node_pids command out clients=$count processes=()
    if [ -n "${PROCESSES:-}" ]; then
        clients=1
        processes=(tests/bench/processes.py "$count")
    fi
    case $3 in
    redlockd)
        servers=$stack_server
        command=("$tools/load" "$listen" "$clients" "$seconds")
        ;;
    etcd)
        servers=$etcd_pid
        nodes=''
        command=("$tools/load-etcd" "$etcd" "$clients" "$seconds")
        ;;
    rslock) command=("$dir/rslock/release/rslock-bench") ;;
    aioredlock) command=("$dir/venv/bin/python3" "$from/use_aioredlock.py") ;;
    baseline) command=("$tools/baseline") ;;
    esac
    [ -n "$servers" ] || command+=("$clients" "$seconds" "${stack_nodes[@]}")
    out=$(cpu_around "$servers" "$nodes" "${processes[@]}" "${command[@]}")
    echo "$count $1 $2 $3 $out left $(count_left "$3")"
}

run_pairs() { # peer
    local pair what order=(redlockd "$1" redlockd)
    for pair in $(seq "${PAIRS:-5}"); do
        # now the one, now the other first: what grows hits both
        for what in "${order[@]:(pair + 1) % 2:2}"; do
            run "$pair" "$1" "$what"
        done
    done
}

for taken in "$listen" "$etcd" "$etcd_peer"; do
    if stack_is_taken "${taken##*:}"; then
        echo "Port ${taken##*:} is taken." >&2
        exit 1
    fi
done
mkdir -p "$dir"
install_peers
stack_begin
stack_start_nodes 5 "$port" --appendonly no
node_pids=${stack_pids[*]}
stack_start_server "${REDLOCKD:-$tools/redlockd}" "$listen" --log-level error \
    --first-start yes
for count in ${PROCESSES:-${CLIENTS:-1 8 64 256}}; do
    for peer in $PEERS; do
        echo "$count ${PROCESSES:+processes as }clients, $peer …" >&2
        [ "$peer" != etcd ] || start_etcd
        run_pairs "$peer"
        [ "$peer" != etcd ] || stop_etcd
    done
done >"$dir/runs"
export PYTHONDONTWRITEBYTECODE=1
tests/bench/peers.py "$dir/runs" build/bench/peers.png
