#!/usr/bin/env python3
"""What permits cost beside ordinary locks, on one server: contention.c with a
pool and without, in turns, PAIRS times (3), SECONDS_RUN seconds each (2).

  full   CLIENTS (64) want a pool of ten, or ten locks, for 5 ms each
  busy   seven clients want a pool of ten, for 5 ms each: nobody has to wait
  free   one client, and CLIENTS, each with a lock of its own or a permit of a
         pool of 1,000, which it releases at once

A round is an acquire of slots or a survey of which are free.
"""
from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
from stack import CLIENTS, TOOLS, Stack
from table import show

PAIRS = int(os.environ.get("PAIRS", "3"))
SECONDS = os.environ.get("SECONDS_RUN", "2")
# name: clients, locks, slots, hold in µs; without locks, nothing is compared
CASES = {
    "full": (CLIENTS, 10, 10, 5000),
    "busy": (7, 0, 10, 5000),
    "free, one client": (1, 1, 1000, 0),
    "free": (CLIENTS, CLIENTS, 1000, 0),
}
Run = dict[str, float]


def permits_of(port: int) -> tuple[float, float]:
    """Grants, and rounds that were needed for them."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = [line.split() for line in answer.read().decode().splitlines()]
    grants, tries, surveys = (
        next(float(line[-1]) for line in lines
             if line[0] == f"redlockd_permit_{name}_total")
        for name in ("grants", "tries", "surveys"))
    return grants, tries + surveys


def run(port: int, clients: int, resources: str, hold_us: int) -> Run:
    grants, rounds = permits_of(port)
    words = subprocess.run(
        [f"{TOOLS}/contention", "wait", str(clients), resources, str(hold_us),
         SECONDS, f"127.0.0.1:{port}"],
        check=True, capture_output=True, text=True).stdout.split()
    found = dict(zip(words[::2], map(float, words[1::2])))
    more_grants, more_rounds = permits_of(port)
    if more_grants > grants:
        found["rounds"] = (more_rounds - rounds) / (more_grants - grants)
    return found


def measure(port: int) -> dict[str, list[tuple[Run, Run]]]:
    """For each case, the pairs of runs: with permits, and with locks."""
    found: dict[str, list[tuple[Run, Run]]] = {name: [] for name in CASES}
    for pair in range(PAIRS):
        for name, (clients, locks, slots, hold_us) in CASES.items():
            print(f"{pair + 1}: {name} …", file=sys.stderr)
            kinds = [f"pool:{slots}"] + [str(locks)] * (locks > 0)
            # now the one, now the other first: what grows hits both
            runs = {kind: run(port, clients, kind, hold_us)
                    for kind in kinds[::1 if pair % 2 else -1]}
            found[name].append((runs[kinds[0]], runs.get(kinds[-1], {})))
    return found


def row(name: str, pairs: list[tuple[Run, Run]]) -> list[str]:
    def median(key: str) -> float:
        return statistics.median(permits[key] for permits, _ in pairs)

    def ratio(key: str) -> str:
        if CASES[name][1] == 0:
            return ""
        return f"{statistics.median(p[key] / l[key] for p, l in pairs):.2f}"
    clients, _, slots, _ = CASES[name]
    fair = statistics.median(p["fewest"] / p["most"] if p["most"] else 0
                             for p, _ in pairs)
    return [name, str(clients), str(slots), f"{median('grants_per_s'):,.0f}",
            ratio("grants_per_s"), f"{median('handovers_per_s'):,.0f}",
            f"{fair:.2f}",
            f"{median('wait_p50_us') / 1000:.2f}", ratio("wait_p50_us"),
            f"{median('rounds'):.2f}"]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder))
        try:
            found = measure(stack.start_server(0))
        finally:
            stack.end()
    show([["", "clients", "slots", "grants/s", "÷ locks", "hand-overs/s",
           "fewest ÷ most", "wait p50 ms", "÷ locks",
           "rounds a grant"]]
         + [row(name, pairs) for name, pairs in found.items()],
         is_markdown=False, is_named=True)
    failures = sum(one.get("failures", 0) for pairs in found.values()
                   for both in pairs for one in both)
    print(f"failures: {failures:.0f}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
