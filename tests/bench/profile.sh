#!/usr/bin/env bash
# Where the CPU time of a cycle goes, on redlockd and on a node: samples of their
# stacks while the load generator runs, put down to what they were in. Beside
# them the floors: a bare libmicrohttpd server that only answers, and nodes that
# get the commands of the Redlock page in rows as long as redlockd's batches.
# In turns, PAIRS times, SECONDS_RUN seconds each without perf for the CPU time,
# and as long with perf. The runs and the stacks go to build/bench/profile.
# OLD names another binary of redlockd to compare with. CLIENTS changes what is
# run; REDLOCKD names another binary, PORT the first of 100 ports. With
# --markdown the tables are printed as docs/measured.md has them.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

seconds=${SECONDS_RUN:-3}
clients=${CLIENTS:-64}
tools=${TOOLS:-build/release}
port=${PORT:-7701}
dir=build/bench/profile
frequency=499 # Hz; a prime, so that it keeps step with nothing
stack=8192    # bytes of each sample; with more, watching costs more
sides=()
row='' # cycles in a batch; redlockd's first run tells
declare -A nodes node_pids server_pids listens

start_nodes() { # side
    stack_nodes=()
    stack_start_nodes $((${#stack_pids[@]} + 5)) "$port" --appendonly no
    nodes[$1]=${stack_nodes[*]}
    node_pids[$1]=$(IFS=, && echo "${stack_pids[*]: -5}")
}

start_redlockd() { # side binary port
    start_nodes "$1"
    listens[$1]=127.0.0.1:$3
    stack_start_server "$2" "${listens[$1]}" --log-level error --first-start yes
    server_pids[$1]=$stack_server
    servers+=("$stack_server")
    sides+=("$1")
}

start_floors() { # port
    start_nodes rows
    listens[http]=127.0.0.1:$1
    stack_spawn "$tools/floor" "$1"
    server_pids[http]=$!
    servers+=("$!")
    if ! stack_until 50 stack_is_taken "$1"; then
        echo "The bare server did not start." >&2
        exit 1
    fi
}

batches() { # side: commands that its nodes got so far
    local node
    for node in ${nodes[$1]:-}; do
        redis-cli -p "${node##*:}" info commandstats
    done | awk -F'[=,]' '/^cmdstat_evalsha:/ {n += $2} END {print n + 0}'
}

# pair side pids command…: the stacks of these processes while it runs
watch() {
    local stacks=$dir/$2.$1
    perf record -q -o "$stack_dir/perf" -e cpu-clock -F "$frequency" -m 2048 \
        --call-graph "dwarf,$stack" -p "$3" -- "${@:4}" >"$stack_dir/watched"
    grep -q ' failures 0 ' "$stack_dir/watched"
    perf script -i "$stack_dir/perf" --no-inline -F pid,ip,sym,dso \
        >"$stacks" 2>"$stack_dir/perf.log"
}

# pair side: first for the CPU time, then the same again for the stacks, as
# watching makes a cycle dearer
run() {
    local server=${server_pids[$2]:-} pids=${node_pids[$2]:-}
    local options=() addresses command before out
    echo "pair $1, $2 …" >&2
    [ -z "$server" ] || options+=(-c "server=$server")
    [ -z "$pids" ] || options+=(-c "nodes=$pids")
    if [ "$2" = rows ]; then
        read -r -a addresses <<<"${nodes[rows]}"
        command=("$tools/rows" "${options[@]}" "$row" "$seconds"
            "${addresses[@]}")
    else
        command=("$tools/load" "${options[@]}" "${listens[$2]}" "$clients"
            "$seconds")
    fi
    before=$(batches "$2")
    out="seconds $seconds server ${server:-0} $("${command[@]}")"
    out+=" batches $(($(batches "$2") - before))"
    echo "$2 $1 $out"
    [ "$2" != redlockd ] || set_row "$out"
    watch "$1" "$2" "$server${server:+${pids:+,}}$pids" "${command[@]}"
}

# What a run printed: a batch is one command on each of five nodes. One client
# alone needs two for a cycle.
set_row() { # line
    [[ $1 =~ \ cycles\ ([0-9]+)\ .*\ batches\ ([0-9]+) ]]
    row=$(((5 * BASH_REMATCH[1] + BASH_REMATCH[2] / 2) / BASH_REMATCH[2]))
    [ "$row" -gt 0 ] || row=1
}

if [ "$(id -u)" -ne 0 ] && [ "$(</proc/sys/kernel/perf_event_paranoid)" -gt 1 ]
then
    echo "Only root sees what the kernel does (kernel.perf_event_paranoid)." >&2
    exit 1
fi
for taken in $((port + 80)) $((port + 81)) $((port + 82)); do
    if stack_is_taken "$taken"; then
        echo "Port $taken is taken." >&2
        exit 1
    fi
done
servers=()
stack_begin
if [ -n "${OLD:-}" ]; then
    start_redlockd old "$OLD" $((port + 80))
fi
start_redlockd redlockd "${REDLOCKD:-$tools/redlockd}" $((port + 81))
start_floors $((port + 82))
stack_pids=("${servers[@]}" "${stack_pids[@]}") # end before the nodes
mkdir -p "$dir"
rm -f "$dir"/*
for pair in $(seq "${PAIRS:-5}"); do
    # now the one, now the other first: what grows hits all
    order=("${sides[@]}" http rows)
    if [ $((pair % 2)) = 0 ]; then
        mapfile -t order < <(printf '%s\n' "${order[@]}" | tac)
    fi
    for side in "${order[@]}"; do
        run "$pair" "$side"
    done
done >"$dir/runs"
tests/bench/profile.py "$@" "$dir"
