#!/usr/bin/env bash
# The same load over TLS and over plain HTTP, in turns, PAIRS times, SECONDS_RUN
# seconds each, on the same nodes; then what HANDSHAKES whole handshakes cost
# the server, with an ECDSA key and with an RSA one.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/bench/cpu.sh
source tests/bench/cpu.sh

tools=${TOOLS:-build/release}
redlockd=${REDLOCKD:-$tools/redlockd}
clients=${CLIENTS:-64}
plain=127.0.0.1:8190
declare -A pids # by port

make_certificate() { # name openssl-key-option…
    openssl req -x509 -nodes -days 2 -subj /CN=localhost -newkey "${@:2}" \
        -keyout "$stack_dir/$1.key" -out "$stack_dir/$1.pem" 2>/dev/null
}

# port option…
start_server() {
    stack_start_server "$redlockd" "127.0.0.1:$1" --log-level error \
        --first-start yes "${@:2}"
    stack_pids=("$stack_server" "${stack_pids[@]}") # ends before the nodes
    pids[$1]=$stack_server
}

# port name
start_secure() {
    local stack_scheme=https
    start_server "$1" --tls-cert "$stack_dir/$2.pem" \
        --tls-key "$stack_dir/$2.key"
}

# plain | tls: cycles/s and the server's CPU time
measure() {
    local listen=$plain options=()
    if [ "$1" = tls ]; then
        listen=127.0.0.1:8191
        options=(-t)
    fi
    printf '%-6s' "$1"
    cpu_around "${pids[${listen##*:}]}" "" "$tools/load" "${options[@]}" \
        "$listen" "$clients" "${SECONDS_RUN:-3}"
}

# port kind
measure_handshakes() {
    local count=${HANDSHAKES:-1000} before after
    before=$(cpu_us "${pids[$1]}")
    python3 - "$1" "$count" <<'END'
import socket
import ssl
import sys

context = ssl._create_unverified_context()
for _ in range(int(sys.argv[2])):
    with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as plain:
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with context.wrap_socket(plain) as secure:
            secure.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
            assert secure.recv(4096).startswith(b"HTTP/1.1 200 ")
END
    after=$(cpu_us "${pids[$1]}")
    echo "handshake $2: $(((after - before) / count)) us of CPU, connection" \
        "and one request included"
}

stack_begin
make_certificate ecdsa ec -pkeyopt ec_paramgen_curve:P-256
make_certificate rsa rsa:2048
stack_start_nodes 5 7241 --appendonly no
start_server 8190
start_secure 8191 ecdsa
start_secure 8192 rsa
for pair in $(seq "${PAIRS:-3}"); do
    # now the one, now the other first: what grows hits both
    if [ $((pair % 2)) = 1 ]; then
        measure plain
        measure tls
    else
        measure tls
        measure plain
    fi
done | tee "$stack_dir/runs"
awk '{ for (i = 2; i < NF; i++) if ($i == "cycles_per_s")
           sum[$1] += $(i + 1) }
     END { if (sum["plain"] > 0)
               printf "tls / plain: %.2f\n", sum["tls"] / sum["plain"] }' \
    "$stack_dir/runs"
measure_handshakes 8191 "ECDSA P-256"
measure_handshakes 8192 "RSA 2048"
