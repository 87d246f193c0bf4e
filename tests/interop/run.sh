#!/usr/bin/env bash
# Breaks Redlock libraries, and tries to break redlockd, with the same faults.
# STORIES="1 5" and LIBRARIES="rslock redlockd" play some of it only. The
# libraries are in build/interop; rslock needs a cargo of 1.85 or newer.
set -euo pipefail
cd "$(dirname "$0")/../.."

dir=build/interop
from=tests/interop

install_python_libraries() {
    cmp -s "$from/requirements.txt" "$dir/installed" && return
    rm -rf "$dir/venv"
    python3 -m venv "$dir/venv"
    "$dir/venv/bin/pip" install -q --disable-pip-version-check \
        -r "$from/requirements.txt"
    cp "$from/requirements.txt" "$dir/installed"
}

# Without it the column says `skipped`, and the run counts what is left.
build_rslock() {
    rm -f "$dir/rslock/release/rslock-holder"
    if ! command -v cargo >/dev/null; then
        echo "rslock: skipped, there is no cargo"
        return
    fi
    nice cargo build -q --locked --release --target-dir "$dir/rslock" \
        --manifest-path "$from/rslock/Cargo.toml" ||
        echo "rslock: skipped, $(cargo --version) does not build it"
}

scripts/deps.sh build run openapi
mkdir -p "$dir"
install_python_libraries
build_rslock
cc -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -shared -fPIC \
    -o "$dir/clock.so" "$from/clock.c"
export PYTHONDONTWRITEBYTECODE=1
exec python3 "$from/main.py" "$dir"
