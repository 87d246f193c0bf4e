# SPDX-License-Identifier: MIT
"""The package for PHP beside Symfony's Lock."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from versions import versions

FROM = Path("tests/bench/clients/php")


def install() -> None:
    subprocess.run(["scripts/deps.sh", "php", "phpredis"], check=True,
                   stdout=sys.stderr)


# those that ask redlockd, and those that ask the nodes themselves
OURS = {f"{whose}, PHP": ["env", f"PACKAGE={Path(package).resolve()}", "php",
                          FROM / "redlockd.php"]
        for whose, package in versions("php").items()}
PEERS = {"Symfony": ["php", FROM / "symfony.php"]}
# beside whom a side is to be looked at
BESIDE = dict.fromkeys(OURS, "Symfony")
NOTE = ("Symfony: its CombinedStore over five RedisStores. PHP has no threads: each "
        "client is a process.")
