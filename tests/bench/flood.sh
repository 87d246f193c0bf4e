#!/usr/bin/env bash
# What a well-behaved identity notices of one that floods the server: eight
# clients alone, and beside 20,000 acquires a second of an identity that may make
# 100, over so many connections; then throughput with and without an auth file.
# PAIRS (3), SECONDS_RUN (5), FLOODERS (32 1000). A line a run; then the medians.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

seconds=${SECONDS_RUN:-5}
pairs=${PAIRS:-3}
listen=127.0.0.1:${FLOOD_PORT:-8185}
plain=127.0.0.1:$((${listen##*:} + 1))
tools=${TOOLS:-build/release}
redlockd=${REDLOCKD:-$tools/redlockd}

hash_of() { # token
    printf %s "$1" | sha256sum | cut -d ' ' -f 1
}

# what name follows in a line of names and values
value() { # name
    sed -n "s/.*\\b$1 \\([0-9.]*\\).*/\\1/p"
}

median() {
    sort -n | awk '{a[NR] = $1} END {print a[int((NR + 1) / 2)]}'
}

ratio() { # numerator denominator
    awk -v a="$1" -v b="$2" 'BEGIN {printf "%.2f\n", a / b}'
}

# CPU time of the server for a cycle, while cycles counted
cost_of() { # line
    ratio "$(value server_cpu_us <<<"$1")" \
        "$(awk -v a="$(value cycles_per_s <<<"$1")" -v b="$seconds" \
            'BEGIN {print a * b}')"
}

beside() { # flooders clients
    local out
    "$tools/flood" "$listen" "$1" $((seconds + 2)) 20000 bad >"$stack_dir/flood" &
    sleep 0.5
    out=$("$tools/load" -a good "$listen" "$2" "$seconds")
    wait $!
    echo "$out flood $(cat "$stack_dir/flood")"
}

stack_begin
stack_start_nodes 5 7901 --appendonly no
(umask 077 && printf 'good sha256:%s lock prefix=*\nbad sha256:%s lock prefix=* rate=100\n' \
    "$(hash_of good)" "$(hash_of bad)" >"$stack_dir/auth")
stack_start_server "$redlockd" "$listen" --log-level warn --first-start yes \
    --auth-file "$stack_dir/auth"

for flooders in ${FLOODERS:-32 1000}; do
    : >"$stack_dir/ratios"
    for pair in $(seq "$pairs"); do
        alone=$("$tools/load" -a good "$listen" 8 "$seconds")
        crowded=$(beside "$flooders" 8)
        echo "flood $flooders $pair alone $alone"
        echo "flood $flooders $pair beside $crowded"
        ratio "$(value p99_us <<<"$crowded")" "$(value p99_us <<<"$alone")" \
            >>"$stack_dir/ratios"
    done
    echo "p99 beside $flooders connections that flood, as a multiple of alone:" \
        "$(median <"$stack_dir/ratios") (2 at most wanted)"
done

known() {
    "$tools/load" -a good -c "server=$auth_server" "$listen" 64 "$seconds"
}

unknown() {
    "$tools/load" -c "server=$plain_server" "$plain" 64 "$seconds"
}

auth_server=$stack_server
stack_server=
stack_start_server "$redlockd" "$plain" --log-level warn
plain_server=$stack_server
: >"$stack_dir/ratios"
: >"$stack_dir/costs"
for pair in $(seq "$pairs"); do
    if [ $((pair % 2)) = 1 ]; then
        with=$(known)
        without=$(unknown)
    else
        without=$(unknown)
        with=$(known)
    fi
    echo "auth $pair with $with"
    echo "auth $pair without $without"
    ratio "$(value cycles_per_s <<<"$with")" \
        "$(value cycles_per_s <<<"$without")" >>"$stack_dir/ratios"
    ratio "$(cost_of "$with")" "$(cost_of "$without")" >>"$stack_dir/costs"
done
echo "the server's CPU time for a cycle with an auth file, as a multiple of" \
    "without: $(median <"$stack_dir/costs")"
echo "throughput with an auth file, as a multiple of without:" \
    "$(median <"$stack_dir/ratios") (0.97 at least wanted)"
kill -INT "$auth_server" "$plain_server"
wait "$auth_server" "$plain_server" || true
stack_server=
