#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The status page in a headless Chromium, over five nodes that are paused and
# flushed; see stories.py. STORIES takes some of them. PICTURES is where the
# pictures go (build/page), PICTURES_S how long there is traffic before.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/lib/libraries.sh
source tests/lib/libraries.sh

dir=build/page
port=8480
scripts/deps.sh build run openapi page
libraries_python "$dir" tests/page/requirements.txt
while stack_is_taken "$port"; do
    port=$((port + 1))
done
stack_begin
stack_start_nodes 5 7801 --appendonly no
stack_start_server "${REDLOCKD:-build/redlockd}" "127.0.0.1:$port" \
    --log-level error --first-start yes
nodes=()
for i in "${!stack_nodes[@]}"; do
    nodes+=("${stack_nodes[i]}=${stack_pids[i]}")
done
# another server over the same nodes, which asks for a token
guarded=$((port + 1))
while stack_is_taken "$guarded"; do
    guarded=$((guarded + 1))
done
identity() { # NAME RIGHTS…: a line for the auth file; the token is NAME-token
    echo "$1 sha256:$(printf %s-token "$1" | sha256sum | cut -d ' ' -f 1) ${*:2}"
}
(umask 077 && {
    identity reader read,metrics 'prefix=*'
    identity locker lock 'prefix=*'
    identity operator read,metrics,admin 'prefix=*'
    identity measurer read 'prefix=*'
    identity limited read 'prefix=*' rate=1 burst=1
} >"$stack_dir/auth")
open_server=$stack_server
stack_start_server "${REDLOCKD:-build/redlockd}" "127.0.0.1:$guarded" \
    --log-level error --auth-file "$stack_dir/auth"
guarded_server=$stack_server
stack_server=$open_server
trap 'kill -INT "$guarded_server" || true; stack_end' EXIT
export GUARDED="http://127.0.0.1:$guarded"
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/lib "$dir/venv/bin/python3" \
    tests/page/main.py "http://127.0.0.1:$port" "$stack_server" "${nodes[@]}"
