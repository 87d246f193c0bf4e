# SPDX-License-Identifier: MIT
"""The package for Ruby beside Redlock over ruby-redis."""
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from versions import versions

FROM = Path("tests/bench/clients/ruby")


def install() -> None:
    subprocess.run(["scripts/deps.sh", "ruby", "rubyredis"], check=True,
                   stdout=sys.stderr)


# those that ask redlockd, and those that ask the nodes themselves
OURS = {f"{whose}, Ruby": ["ruby", "-I", f"{package}/lib", FROM / "redlockd.rb"]
        for whose, package in versions("ruby").items()}
PEERS = {"ruby-redis": ["ruby", FROM / "redlock.rb"]}
# beside whom a side is to be looked at
BESIDE = dict.fromkeys(OURS, "ruby-redis")
NOTE = ("ruby-redis: Debian has no redlock-rb. This is what redlock-rb does, written "
        "over ruby-redis for this measurement.")
