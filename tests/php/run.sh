#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The PHP client: its transcripts, its README, Symfony's store, and locks over
# servers that fail, made up ones and real ones. TRIES: how often each fault is
# played; arguments choose tests, such as check_php or check_faults.Faults.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/deps.sh build run test tls php
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=tests/php:tests/protocol:tests/lib:tests/interop:tests/examples
export HOLDER="php tests/php/holder.php"
tests=("$@")
[ "${#tests[@]}" -gt 0 ] || tests=(check_php check_guard check_kept check_faults)
exec python3 tests/python/main.py "${tests[@]}"
