#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Node client as `npm pack` makes it: its protocol without I/O, servers that
# fail as a script says, real ones that are killed and paused, types, README. All
# is in build/node. NODE is the interpreter; arguments choose tests, such as
# renew or live; `faults` are those with processes that are killed and stopped,
# TRIES times each, or check_faults.Faults.test_… one of them; `guard`: servers
# that ask who is there; `kept`: kept connections that end.
set -euo pipefail
cd "$(dirname "$0")/../.."

root=$PWD
dir=$root/build/node
from=$root/tests/node
export NODE=${NODE:-node} TRIES=${TRIES:-2}
export REDLOCKD=${REDLOCKD:-build/release/redlockd} TOOLS=${TOOLS:-build/release}
REDLOCKD=$(realpath "$REDLOCKD")
TOOLS=$(realpath "$TOOLS")

scripts/deps.sh build run tls node
rm -rf "$dir"
mkdir -p "$dir/node_modules/redlockd-client"
export npm_config_cache=$dir/cache npm_config_update_notifier=false
npm pack --silent --offline --pack-destination "$dir" ./api/clients/node \
    >/dev/null
# what a user has: the files of the tarball, and nothing else
tar -xzf "$dir"/*.tgz -C "$dir/node_modules/redlockd-client" --strip-components 1
cp -r "$from" "$dir/tests"

unset "${!REDLOCKD_@}"
export ROOT=$root HOLDER="$NODE $dir/tests/holder.mjs"
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$root/tests/lib:$root/tests/interop
export CERTIFICATES=$dir/certificates
mkdir "$CERTIFICATES"
python3 -c 'import pathlib, sys, certificates
certificates.Certificates(pathlib.Path(sys.argv[1]))' "$CERTIFICATES"

cd "$dir/tests"
names=("$@")
[ $# -gt 0 ] || names=(*.test.mjs faults guard kept)
alone=()
served=() # they use the same servers: one after the other
faults=()
for name in "${names[@]%.test.mjs}"; do
    case $name in
    kept) faults+=(check_kept.Kept) ;;
    faults | guard | check_*) faults+=("check_${name#check_}") ;;
    crowd | live | readme) served+=("$name.test.mjs") ;;
    *) alone+=("$name.test.mjs") ;;
    esac
done
# Node 18 knows no --test-timeout
run=(timeout -k 5 600 "$NODE" --test --test-reporter=./reporter.mjs)
[ ${#alone[@]} -eq 0 ] || "${run[@]}" --test-concurrency=6 "${alone[@]}"
[[ " ${names[*]} " != *" protocol"* ]] || "$root/tests/protocol/broken.py" node
[ ${#served[@]} -eq 0 ] ||
    "$from/servers.py" "${run[@]}" --test-concurrency=1 "${served[@]}"
[ ${#faults[@]} -gt 0 ] || exit 0
cd "$root"
PYTHONPATH=tests/protocol:tests/examples:$PYTHONPATH exec python3 \
    tests/python/main.py "${faults[@]}"
