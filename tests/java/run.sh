#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Java client: its transcripts, its README, and locks over servers that fail, made
# up ones and real ones. TRIES: how often each fault is played; arguments choose tests,
# such as check_java or check_faults.Faults.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/deps.sh build run test tls java
rm -rf build/java
find api/clients/java/src -name '*.java' -print0 |
    xargs -0 javac --release 11 -Xlint:all,-try -Werror -d build/java/package
javac --release 11 -Xlint:all,-try -Werror -cp build/java/package \
    -d build/java/tests tests/java/*.java
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=tests/java:tests/protocol:tests/lib:tests/interop:tests/examples
# a small JVM starts faster
export HOLDER="java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
HOLDER+=" -cp build/java/package:build/java/tests Holder"
tests=("$@")
[ "${#tests[@]}" -gt 0 ] || tests=(check_java check_guard check_kept.Kept check_faults)
exec python3 tests/python/main.py "${tests[@]}"
