#!/usr/bin/env bash
# Ten thousand connections that do nothing or wait, and a few clients that work.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh

listen=127.0.0.1:8182
tools=${TOOLS:-build/release}

stack_begin
stack_start_nodes 5 7201 --appendonly no
stack_start_server "${REDLOCKD:-$tools/redlockd}" "$listen" --log-level warn \
    --first-start yes
tests/bench/crowd.py "$tools/load" "$listen" "$stack_server"
