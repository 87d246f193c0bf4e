# SPDX-License-Identifier: MIT
"""The Python package beside aioredlock, redlock-py and pottery."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

BUILD, FROM = Path("build/bench/clients"), Path("tests/bench/clients/python")
OLD = os.environ.get("OLD_PYTHON", "")


def _ours(venv: str) -> dict[str, list]:
    return {name: [BUILD / venv / "venv/bin/python3", FROM / f"{program}.py"]
            for name, program in (("asyncio", "redlockd_asyncio"),
                                  ("threads", "redlockd_threads"))}


def _install(venv: str, package: str) -> None:
    subprocess.run(["bash", "-c", "source tests/lib/libraries.sh; "
                    f"libraries_python {BUILD / venv} {FROM}/requirements.txt"],
                   check=True, stdout=sys.stderr)
    subprocess.run([BUILD / venv / "venv/bin/pip", "install", "-q",
                    "--disable-pip-version-check", "--force-reinstall",
                    *([] if package == OLD else ["--no-deps"]), package],
                   check=True, stdout=sys.stderr)


def install() -> None:
    _install("python", "./api/clients/python")
    if OLD:
        _install("python-old", OLD)


# those that ask redlockd, and those that ask the nodes themselves
OURS = {f"ours, {name}": command for name, command in _ours("python").items()}
if OLD:
    OURS |= {f"old, {name}": command
             for name, command in _ours("python-old").items()}
PYTHON = BUILD / "python/venv/bin/python3"
PEERS = {"aioredlock": [PYTHON, "tests/bench/peers/use_aioredlock.py"],
         "redlock-py": [PYTHON, FROM / "redlock_py.py"],
         "pottery": [PYTHON, FROM / "pottery_threads.py"]}
# those that hold many locks
HELD = {f"ours, {name}": [PYTHON, FROM / f"held_{name}.py", "{locks}", "{ttl_ms}",
                          "{seconds}", "{url}"] for name in ("asyncio", "threads")}
# beside whom a side is to be looked at
BESIDE = {"ours, asyncio": "aioredlock", "ours, threads": "redlock-py",
          "old, asyncio": "aioredlock", "old, threads": "redlock-py"}
