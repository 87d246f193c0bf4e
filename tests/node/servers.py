#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Starts five Redis masters and two redlockd; runs a command beside them, and
ends with its status.

  servers.py COMMAND…

The command learns what there is by the variable SERVERS, as JSON."""
from __future__ import annotations

import json
import os
import subprocess
import sys

from world import World


def main() -> int:
    with World.ready(2, "--max-ttl-ms", "60000") as world:
        told = {
            "urls": [f"http://{one.address}" for one in world.servers],
            "nodes": [{"pid": node.process.pid} for node in world.nodes],
        }
        return subprocess.run(sys.argv[1:], check=False, env={
            **os.environ, "SERVERS": json.dumps(told)}).returncode


if __name__ == "__main__":
    sys.exit(main())
