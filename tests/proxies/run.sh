#!/usr/bin/env bash
# Proxies in front of redlockd: with our configurations of deploy/, and clients
# behind one that does not pass on that they have left. Ends with the sum.
# Arguments choose tests.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/lib/libraries.sh
source tests/lib/libraries.sh

scripts/deps.sh build run test openapi node go ctl
libraries_python build/proxies tests/proxies/requirements.txt
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/lib
said=$(mktemp)
trap 'rm "$said"' EXIT
status=0
for tests in check_clients check_deploy; do
    build/proxies/venv/bin/python3 "tests/proxies/$tests.py" "$@" |
        tee -a "$said" || status=1
done
awk -v status="$status" '
    /^[0-9]+ passed, [0-9]+ failed$/ {parts++; passed += $1; failed += $3}
    END {
        if (parts != 2 || (status != 0 && failed == 0))
            failed++ # one ended without its last line
        printf "proxies: %d passed, %d failed\n", passed, failed
    }' "$said"
exit "$status"
