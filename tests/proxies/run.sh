#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# HAProxy and nginx in front of redlockd, with our configurations of deploy/.
# Arguments choose tests.
set -euo pipefail
cd "$(dirname "$0")/../.."

scripts/deps.sh build run test ctl
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/lib
exec tests/proxies/check_deploy.py "$@"
