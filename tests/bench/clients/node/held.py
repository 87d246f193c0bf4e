#!/usr/bin/env python3
"""1,000 locks of 3 s, held for a minute by one process of the package for Node
while all cores are busy with something else: none may be lost, and the process
may use 10% of a core.

  held.py [LOCKS [TTL_MS [SECONDS]]]

REDLOCKD names the binary, PACKAGE another folder with the package."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.dont_write_bytecode = True
ROOT = Path(__file__).resolve().parents[4]
sys.path[:0] = [str(ROOT / "tests/lib"), str(ROOT / "tests/bench")]
os.chdir(ROOT)
os.environ.setdefault("PACKAGE", str(ROOT / "api/clients/node"))

from measure import output
from stack import started


def main() -> int:
    asked = [*sys.argv[1:], *("1000", "3000", "60")[len(sys.argv) - 1:]]
    busy = [subprocess.Popen([sys.executable, "-c", "while True: pass"])
            for _ in range(os.cpu_count() or 1)]
    try:
        with started(log_level="error") as stack:
            run = output("node", "tests/bench/clients/node/held.mjs", *asked,
                         f"http://127.0.0.1:{stack.start_server(0)}")
    finally:
        for one in busy:
            one.kill()
    percent = run["cpu_us"] / float(asked[2]) / 1e4
    print(f"held {run['held']:.0f}, lost {run['lost']:.0f}, at least "
          f"{run['least_left_ms']:.0f} ms left, {percent:.1f}% of a core")
    return 0 if run["lost"] == 0 and percent <= 10 else 1


if __name__ == "__main__":
    sys.exit(main())
