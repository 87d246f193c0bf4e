#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# All tests of redlockctl; ends with the sum: run.sh TRIES-OF-EACH-FAULT
set -euo pipefail
here=$(dirname "$0")

said=$(mktemp)
trap 'rm "$said"' EXIT
status=0
"$here"/commands.sh | tee -a "$said" || status=1
"$here"/secure.py | tee -a "$said" || status=1
"$here"/faults.py "$1" | tee -a "$said" || status=1
"$here"/starved.py | tee -a "$said" || status=1
"$here"/foreign.py | tee -a "$said" || status=1
"$here"/limits.py | tee -a "$said" || status=1
"$here"/again.py | tee -a "$said" || status=1
"$here"/cancel.py | tee -a "$said" || status=1
awk -v status="$status" '
    /^[0-9]+ passed, [0-9]+ failed$/ {parts++; passed += $1; failed += $3}
    END {
        if (parts != 8 || (status != 0 && failed == 0))
            failed++ # one ended without its last line
        printf "ctl-test: %d passed, %d failed\n", passed, failed
    }' "$said"
exit "$status"
