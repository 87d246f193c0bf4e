# SPDX-License-Identifier: MIT
"""Faults that are played again and again, some tries at the same time."""
from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

TOGETHER = 4
# plays tries of these names: how many ms before the end of the validity each
# ended; raises one of PROBLEMS
Round = Callable[[list[str]], list[float]]
PROBLEMS = (AssertionError, TimeoutError, subprocess.TimeoutExpired)


def passes(name: str, one_round: Round, tries: int, log: Path, sign: str) -> bool:
    early: list[float] = []
    while len(early) < tries:
        names = [f"{name}.{len(early) + i}"
                 for i in range(min(TOGETHER, tries - len(early)))]
        try:
            early += one_round(names)
        except PROBLEMS as problem:
            print(f"FAIL  {name}: {problem}; after {len(early)} tries\n"
                  f"{log.read_text()[-2000:]}", flush=True)
            return False
    print(f"ok    {name}: {len(early)} tries; the last {sign} was "
          f"{min(early):.0f} to {max(early):.0f} ms before the end of the "
          "validity", flush=True)
    return True


def play(rounds: dict[str, Round], tries: int, wanted: list[str], log: Path,
         sign: str) -> int:
    """All, or those that are wanted. Returns the exit status."""
    if unknown := set(wanted) - set(rounds):
        sys.exit(f"{', '.join(unknown)}: no such fault; there are {' '.join(rounds)}")
    results = [passes(name, one_round, tries, log, sign)
               for name, one_round in rounds.items() if name in (wanted or rounds)]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) and results else 1
