#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Alerts and dashboard: promtool, and a real Prometheus over real servers. TESTS
# takes some, such as check_live.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/deps.sh build run alerts
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/alerts:tests/lib
[ $# -gt 0 ] || set -- discover -s tests/alerts -p 'check_*.py'
exec /usr/bin/python3 -m unittest "$@" -v
