#!/usr/bin/env bash
# Plays what clients of redlockd go through with each of api/clients/examples/:
#   run.sh [--self-test]
set -euo pipefail
cd "$(dirname "$0")/../.."

dir=build/examples
from=api/clients/examples

scripts/deps.sh build run examples
mkdir -p "$dir"
if command -v javac >/dev/null; then
    javac -Xlint:all,-serial,-try -Werror -d "$dir" "$from/Lock.java" \
        tests/examples/{Aside,Nested}.java
fi
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/interop:tests/lib
exec python3 tests/examples/main.py "$@"
