#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Work for lock.sh: looks for its lock right before each step.
#   work.sh WORK_MS
set -euo pipefail
for ((step = 0; step < $1 / 50; step++)); do
    sleep 0.05
    read -r until_ms <"$LOCK_UNTIL"
    read -r uptime _ </proc/uptime
    [ "$until_ms" -gt $((10#${uptime/./} * 10)) ] || exit 70
    echo "working $((${EPOCHREALTIME/./} / 1000)) $FENCE${SLOT:+ $SLOT}"
done
