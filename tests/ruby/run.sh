#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Ruby client: its transcripts, its README, its concern for ActiveJob, and locks
# over servers that fail, made up ones and real ones. TRIES: how often each fault is
# played; arguments choose tests, such as check_ruby or check_faults.Faults.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/deps.sh build run test tls ruby
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=tests/ruby:tests/protocol:tests/lib:tests/interop:tests/examples
export HOLDER="ruby -W -I api/clients/ruby/lib tests/ruby/holder.rb"
tests=("$@")
[ "${#tests[@]}" -gt 0 ] || tests=(check_ruby check_coalescing check_guard check_kept check_faults)
exec python3 tests/python/main.py "${tests[@]}"
