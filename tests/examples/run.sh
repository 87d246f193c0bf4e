#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Plays what clients of redlockd go through with each of api/clients/examples/:
#   run.sh [--self-test]
set -euo pipefail
cd "$(dirname "$0")/../.."

# shellcheck source=tests/lib/libraries.sh
source tests/lib/libraries.sh

dir=build/examples
from=api/clients/examples

scripts/deps.sh build run examples node go php ruby java
mkdir -p "$dir"
# what the programs of the guide import: the packages of this tree
libraries_python "$dir/python" tests/examples/requirements.txt
ln -sfn "$PWD/api/clients/python/src/redlockd" \
    "$(echo "$dir"/python/venv/lib/python3*/site-packages)/redlockd"
package=$dir/node_modules/redlockd-client
mkdir -p "$(dirname "$package")" # its name may have a scope
ln -sfn "$PWD/api/clients/node" "$package"
cp "$from"/guide/*.mjs "$dir" # node looks for packages beside a program
go_program() { # name
    local folder=$dir/go-$1
    mkdir -p "$folder"
    cp "$from/guide/$1.go" "$folder/main.go"
    sed -i '/^.\/go:build ignore$/d' "$folder/main.go"
    printf 'module example.com/guide\n\ngo 1.19\n\n%s\n%s\n' \
        "require github.com/redlockd/redlockd/api/clients/go v$(cat VERSION)" \
        "replace github.com/redlockd/redlockd/api/clients/go => $PWD/api/clients/go" \
        >"$folder/go.mod"
    (cd "$folder" && GOFLAGS=-mod=mod GOTOOLCHAIN=local go vet . &&
        GOFLAGS=-mod=mod GOTOOLCHAIN=local go build -o "../$1" .)
}
if command -v go >/dev/null; then
    go_program worker
fi
mkdir -p "$dir/java"
find api/clients/java/src -name '*.java' -print0 |
    xargs -0 javac --release 11 -d "$dir/java"
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/interop:tests/lib
exec python3 tests/examples/main.py "$@"
