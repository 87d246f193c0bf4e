#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Runs five durable Redis masters and redlockd until Ctrl-C. What the masters have
# written goes with them. make ends this script when it is killed.
# REDLOCKD_… variables configure redlockd as usual.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

listen=${REDLOCKD_LISTEN:-127.0.0.1:8080}
if stack_is_taken "${listen##*:}"; then
    echo "Port ${listen##*:} is in use. To use another one:" >&2
    echo "  REDLOCKD_LISTEN=127.0.0.1:9090 make run" >&2
    exit 1
fi

stack_begin
stack_start_nodes 5 7101 --appendonly yes --appendfsync always
stack_start_server "${REDLOCKD:-build/redlockd}" "$listen"
cat <<END

redlockd serves http://$listen on top of five Redis masters:
  ${stack_nodes[*]}
Ctrl-C stops all of them. They keep nothing: the next run begins without a lock.
In another terminal:

  curl -s -H 'Content-Type: application/json' -d '{"resource":"order:42","ttl_ms":30000}' http://$listen/locks

END
# go on if a node is killed: people may want to see what happens
wait "$stack_server"
