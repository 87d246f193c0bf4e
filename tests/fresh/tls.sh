#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# What docs/reference/tls.md shows a newcomer, from one end to the other: a CA, a
# node that speaks nothing else, and a lock over HTTPS. Each side verifies the other.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

redlockd=$(realpath "${REDLOCKD:-build/redlockd}")

free_port() { # the first to try
    local port=$1
    while stack_is_taken "$port"; do
        port=$((port + 1))
    done
    echo "$port"
}

make_ca() {
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -days 30 -subj "/CN=try" -keyout ca.key -out ca.pem
}

# For servers and clients: nodes and redlockd are both.
make_certificate() { # name
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
        -subj "/CN=$1" -keyout "$1.key" -out "$1.csr"
    printf '%s\n' 'subjectAltName=DNS:localhost,IP:127.0.0.1' \
        'extendedKeyUsage=serverAuth,clientAuth' >"$1.ext"
    openssl x509 -req -in "$1.csr" -CA ca.pem -CAkey ca.key -CAcreateserial \
        -days 30 -extfile "$1.ext" -out "$1.pem"
}

start_node() { # port
    stack_spawn redis-server --port 0 --tls-port "$1" --dir "$stack_dir" \
        --tls-cert-file node.pem --tls-key-file node.key \
        --tls-ca-cert-file ca.pem --appendonly yes --appendfsync always
    stack_pids=("$!")
    stack_nodes=("rediss://localhost:$1")
}

refused() { # curl-argument…
    if curl -sS "$@"; then
        echo "was answered: curl $*" >&2
        return 1
    fi
}

stack_begin
cd "$stack_dir"
make_ca
make_certificate node
make_certificate server
start_node "$(free_port 7379)"
listen=127.0.0.1:$(free_port 8443)
stack_scheme=https
stack_start_server "$redlockd" "$listen" --node-ca ca.pem \
    --node-cert server.pem --node-key server.key \
    --tls-cert server.pem --tls-key server.key --tls-client-ca ca.pem
curl -sS --cacert ca.pem --cert server.pem --key server.key -o answer \
    --json '{"resource":"order:42","ttl_ms":30000}' "https://$listen/locks"
cat answer
grep -q '"fencing_token":' answer
refused --cacert ca.pem "https://$listen/nodes" # shows no certificate
refused "http://$listen/readyz"
curl -fsS --cacert ca.pem "https://$listen/readyz" # a probe needs none
