#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Go client, as a user's module gets it from a module proxy: its own tests,
# its README, and locks over servers that fail, made up ones and real ones. All
# is in build/go. TRIES: how often each fault is played; arguments choose tests,
# such as check_module or check_faults.Faults.
set -euo pipefail
cd "$(dirname "$0")/../.."

dir=$PWD/build/go
from=tests/go

scripts/deps.sh build run go tls
# what a user has: a proxy with this one module, and nothing in the cache
export GOPROXY=file://$dir/proxy GOSUMDB=off GOWORK=off GOTOOLCHAIN=local
export GOFLAGS="-mod=mod -modcacherw" GOMODCACHE=$dir/cache
# its index of a module knows only the version: not that files were added since
export GODEBUG=goindex=0
rm -rf "$dir"
mkdir -p "$dir"
module=$(scripts/gomod.py "$dir/proxy")
cp -r "$from/user" "$dir/user"
(
    cd "$dir/user"
    go mod init example.com/user 2>/dev/null
    go get "$module"
    go build -race -o "$dir/holder" ./holder
    go test -race -c -o "$dir/fake.test" .
    go test -race -c -tags live -o "$dir/live.test" ./live
)
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=$from:tests/protocol:tests/lib:tests/interop:tests/examples
export HOLDER=$dir/holder
tests=("$@")
[ "${#tests[@]}" -gt 0 ] ||
    tests=(check_module check_pages check_guard check_kept check_faults)
exec python3 tests/python/main.py "${tests[@]}"
