#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# The Python client, installed from its wheel: types, its README, and locks over
# servers that fail, made up ones and real ones. All is in build/python. PYTHON
# is the interpreter (python3, 3.11 or newer); arguments choose tests, such as
# check_sync or check_live.Faults.
set -euo pipefail
cd "$(dirname "$0")/../.."
# shellcheck source=tests/lib/libraries.sh
source tests/lib/libraries.sh

dir=build/python
from=tests/python

scripts/deps.sh build run test openapi tls
libraries_python "$dir" "$from/requirements.txt"
# what a user has: the wheel and what it depends on, and nothing else
rm -rf "$dir/user" "$dir"/*.whl
"$dir/venv/bin/pip" wheel -q --disable-pip-version-check --no-deps \
    --no-build-isolation -w "$dir" api/clients/python
"${PYTHON:-python3}" -m venv "$dir/user"
"$dir/user/bin/pip" install -q --disable-pip-version-check \
    -c "$from/requirements.txt" "$dir"/*.whl
export PYTHONDONTWRITEBYTECODE=1
export PYTHONPATH=tests/protocol:tests/lib:tests/interop:tests/examples
export HOLDER="$dir/user/bin/python3 $from/holder.py"
exec "$dir/user/bin/python3" -W default "$from/main.py" "$@"
