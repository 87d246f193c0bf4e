# SPDX-License-Identifier: MIT
"""The package for Node beside Redlock over Debian's node-redis."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from versions import versions

FROM = Path("tests/bench/clients/node")


def _ours(package: str, program: str = "redlockd") -> list:
    return ["env", f"PACKAGE={Path(package).resolve()}", "node",
            FROM / f"{program}.mjs"]


def install() -> None:
    subprocess.run(["scripts/deps.sh", "bench-node"], check=True,
                   stdout=sys.stderr)


# those that ask redlockd, and those that ask the nodes themselves
OURS = {f"{whose}, Node": _ours(package)
        for whose, package in versions("node").items()}
PEERS = {"node-redis": ["env", "NODE_PATH=/usr/share/nodejs", "node",
                        FROM / "redlock.mjs"]}
HELD = {"ours, Node": [*_ours("api/clients/node", "held"), "{locks}", "{ttl_ms}",
                       "{seconds}", "{url}"]}
NOTE = ("node-redis: Redlock over node-redis as node-redlock does it; node-redlock "
        "itself is not in Debian.")
# beside whom a side is to be looked at
BESIDE = dict.fromkeys(OURS, "node-redis")
