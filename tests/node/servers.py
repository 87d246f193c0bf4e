#!/usr/bin/env python3
"""Starts five Redis masters, two redlockd, and two that ask who is there; runs a
command beside them, and ends with its status.

  servers.py COMMAND…

The command learns what there is by the variable SERVERS, as JSON."""
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from certificates import Certificates
from guarded import Guarded, identity
from world import REDLOCKD, World

TOKEN = "first+token/of~2026=="


def guarded(stack: ExitStack, folder: Path, certificates: Certificates,
            *identities: str, client_ca: str = "") -> dict[str, object]:
    one = stack.enter_context(Guarded(REDLOCKD, folder, certificates,
                                      *identities, client_ca=client_ca))
    return {"url": one.url, "folder": str(folder), "pid": one.server.pid}


def main() -> int:
    with ExitStack() as stack:
        folder = Path(tempfile.mkdtemp(prefix="servers."))
        stack.callback(shutil.rmtree, folder)
        certificates = Certificates(folder)
        world = stack.enter_context(World.ready(2, "--max-ttl-ms", "60000"))
        told = {
            "certificates": str(folder),
            "urls": [f"http://{one.address}" for one in world.servers],
            "nodes": [{"pid": node.process.pid, "port": node.port}
                      for node in world.nodes],
            "guarded": guarded(stack, folder / "guarded", certificates,
                               identity("batch", TOKEN, "lock,read prefix=b/")),
            "mutual": guarded(stack, folder / "mutual", certificates,
                              "gate cert:dns:gateway lock,read prefix=*",
                              client_ca="ca.pem"),
        }
        return subprocess.run(sys.argv[1:], check=False, env={
            **os.environ, "SERVERS": json.dumps(told)}).returncode


if __name__ == "__main__":
    sys.exit(main())
