#!/usr/bin/env python3
"""1,000 locks of 3 s, held for a minute by one process of the package for Node
while all cores are busy with something else: none may be lost, and the process
may use 10% of a core.

  held.py [LOCKS [TTL_MS [SECONDS]]]

REDLOCKD names the binary."""
from __future__ import annotations

import os
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
    with started(log_level="error") as stack:
        run = output("node", "tests/bench/clients/node/held.mjs", *asked,
                     f"http://127.0.0.1:{stack.start_server(0)}")
    print(*(f"{name} {value:g}" for name, value in run.items()))
    return 0 if run["lost"] == 0 and run["cpu_percent"] <= 10 else 1


if __name__ == "__main__":
    sys.exit(main())
