#!/usr/bin/env python3
"""Cycles of shared locks beside those of exclusive ones, on one server: load.c
with -s and without, in turns, PAIRS times (3), SECONDS_RUN seconds each (2). Each
client has a lock of its own; in the last row all readers have one.
"""
from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
from stack import CLIENTS, TOOLS, Stack
from table import show

PAIRS = int(os.environ.get("PAIRS", "3"))
SECONDS = os.environ.get("SECONDS_RUN", "2")
# name: clients, what else the readers do
CASES = {
    "one": (1, []),
    "few": (8, []),
    "many": (CLIENTS, []),
    "many of one lock": (CLIENTS, ["-r", "bench:readers"]),
}
Run = dict[str, float]


def run(stack: Stack, port: int, clients: int, options: list[str]) -> Run:
    """Of a cycle, but for the failures."""
    nodes = ",".join(str(node.pid) for node in stack.nodes)
    words = subprocess.run(
        [f"{TOOLS}/load", "-c", f"nodes={nodes}", "-c",
         f"server={stack.servers[0].pid}", *options, f"127.0.0.1:{port}",
         str(clients), SECONDS],
        check=True, capture_output=True, text=True).stdout.split()
    found = dict(zip(words[::2], map(float, words[1::2])))
    return {"rate": found["cycles_per_s"], "failures": found["failures"],
            "server": found["server_cpu_us"] / found["cycles"],
            "nodes": found["nodes_cpu_us"] / found["cycles"]}


def measure(stack: Stack, port: int) -> dict[str, list[tuple[Run, Run]]]:
    """For each case, the pairs of runs: of readers, and of writers."""
    found: dict[str, list[tuple[Run, Run]]] = {name: [] for name in CASES}
    for pair in range(PAIRS):
        for name, (clients, options) in CASES.items():
            print(f"{pair + 1}: {name} …", file=sys.stderr)
            kinds = {"readers": ["-s", *options], "writers": []}
            # now the one, now the other first: what grows hits both
            runs = {kind: run(stack, port, clients, kinds[kind])
                    for kind in sorted(kinds, reverse=pair % 2 == 1)}
            found[name].append((runs["readers"], runs["writers"]))
    return found


def row(name: str, pairs: list[tuple[Run, Run]]) -> list[str]:
    def ratio(key: str) -> str:
        return f"{statistics.median(r[key] / w[key] for r, w in pairs):.2f}"
    rate = statistics.median(readers["rate"] for readers, _ in pairs)
    return [name, str(CASES[name][0]), f"{rate:,.0f}", ratio("rate"),
            ratio("server"), ratio("nodes")]


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder))
        try:
            found = measure(stack, stack.start_server(0, "--log-level", "warn"))
        finally:
            stack.end()
    show([["readers", "clients", "cycles/s", "÷ writers", "redlockd's CPU",
           "nodes' CPU"]]
         + [row(name, pairs) for name, pairs in found.items()],
         is_markdown=False, is_named=True)
    failures = sum(one["failures"] for pairs in found.values()
                   for both in pairs for one in both)
    print(f"failures: {failures:.0f}")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
