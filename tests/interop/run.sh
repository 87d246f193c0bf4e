#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Lock libraries and redlockd: run.sh main|neighbours…
#
#   main        breaks Redlock libraries, and tries to break redlockd, with the
#               same faults; STORIES="1 5" and LIBRARIES="rslock redlockd"
#   neighbours  who keeps whom out on the same nodes; NEIGHBOURS="redsync GETSET"
#
# The libraries are in build/interop and build/rslock; rslock needs a cargo of 1.85 or newer.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/lib/libraries.sh
source tests/lib/libraries.sh

dir=build/interop
from=tests/interop

scripts/deps.sh build run openapi
mkdir -p "$dir"
# one after the other, if this runs twice at a time
exec {lock}>"$dir/lock"
flock "$lock"
libraries_python "$dir" "$from/requirements.txt"
# Without it the column says `skipped`, and the run counts what is left.
libraries_rust holder rslock-holder || true
exec {lock}>&-
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/lib
for part in "$@"; do
    python3 "$from/$part.py" "$dir"
done
