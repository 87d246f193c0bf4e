#!/usr/bin/env bash
# Ten thousand connections that do nothing or wait, and a few clients that work;
# then ten thousand that have shaken hands over TLS. KINDS="plain" or "tls" takes
# one of them.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

listen=127.0.0.1:8182
tools=${TOOLS:-build/release}

kinds=" ${KINDS:-plain tls} "
status=0

stack_begin
stack_start_nodes 5 7201 --appendonly no
options=(--log-level warn --first-start yes)
if [[ $kinds = *" plain "* ]]; then
    stack_start_server "${REDLOCKD:-$tools/redlockd}" "$listen" "${options[@]}"
    tests/bench/crowd.py "$tools/load" "$listen" "$stack_server" || status=1
    kill -INT "$stack_server"
    wait "$stack_server"
fi
if [[ $kinds = *" tls "* ]]; then
    openssl req -x509 -nodes -days 2 -subj /CN=localhost -newkey ec \
        -pkeyopt ec_paramgen_curve:P-256 -keyout "$stack_dir/key.pem" \
        -out "$stack_dir/cert.pem" 2>/dev/null
    stack_scheme=https
    stack_start_server "${REDLOCKD:-$tools/redlockd}" "$listen" \
        "${options[@]}" --tls-cert "$stack_dir/cert.pem" \
        --tls-key "$stack_dir/key.pem"
    tests/bench/crowd.py "$tools/load" "$listen" "$stack_server" tls || status=1
fi
exit "$status"
