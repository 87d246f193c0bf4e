#!/usr/bin/env bash
# The manifests of deploy/kubernetes: schemas, what must agree, and five Redis
# and redlockd on loopback with the very arguments of the pods. TESTS takes some
# of them, such as check_live. The tools are in build/kube.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/lib/libraries.sh
source tests/lib/libraries.sh

scripts/deps.sh build run openapi kube
libraries_python build/kube tests/kube/requirements.txt
export PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=tests/kube:tests/lib
[ $# -gt 0 ] || set -- discover -s tests/kube -p 'check_*.py'
exec build/kube/venv/bin/python3 -m unittest "$@" -v
