#!/usr/bin/env bash
# Plays what clients of redlockd go through with each of api/clients/examples/:
#   run.sh [--self-test]
set -euo pipefail
cd "$(dirname "$0")/../.."

dir=build/examples
from=api/clients/examples

scripts/deps.sh build run examples
mkdir -p "$dir"
# the broken ones are in Python and SQL
if [ "${1:-}" != --self-test ]; then
    if command -v javac >/dev/null; then
        javac -Xlint:all,-serial,-try -Werror -d "$dir" "$from/Lock.java" \
            tests/examples/Aside.java
    fi
fi
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/interop:tests/lib
exec python3 tests/examples/main.py "$@"
