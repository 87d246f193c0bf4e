#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Clients generated from openapi.yaml, over five nodes: see README.md. GENERATORS
# (all): which. SHORT=1: those that each change must pass. The tools are in build/generators/venv.
set -euo pipefail
cd "$(dirname "$0")/../../.."
# shellcheck source=scripts/stack.sh
source scripts/stack.sh
# shellcheck source=tests/lib/libraries.sh
source tests/lib/libraries.sh

dir=build/generators
ttl_ms=7000 # other limits than the defaults: no client may know those
port=8390

read -ra chosen <<<"${GENERATORS:-${SHORT:+short}}"
scripts/deps.sh build run generators
libraries_python "$dir" tests/openapi/generators/requirements.txt
jar=$(echo "$PWD/$dir"/venv/lib/python3*/site-packages/openapi_generator_cli/*.jar)
while stack_is_taken "$port"; do
    port=$((port + 1))
done
stack_begin
stack_start_nodes 5 7651 --appendonly no
stack_start_server "${REDLOCKD:-build/redlockd}" "127.0.0.1:$port" \
    --log-level error --first-start yes --default-ttl-ms "$ttl_ms" \
    --max-ttl-ms 20000
PYTHONDONTWRITEBYTECODE=1 python3 tests/openapi/generators/matrix.py \
    "$PWD/$dir/venv/bin" "$jar" "http://127.0.0.1:$port" "$ttl_ms" \
    "${chosen[@]}"
