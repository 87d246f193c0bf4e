#!/usr/bin/env bash
# Alarms and dashboard: promtool, and a real Prometheus over real servers. TESTS
# takes some, such as check_live.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/deps.sh build run alarms
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/alarms:tests/lib
[ $# -gt 0 ] || set -- discover -s tests/alarms -p 'check_*.py'
exec /usr/bin/python3 -m unittest "$@" -v
