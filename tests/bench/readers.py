"""Cycles of shared locks beside those of exclusive ones, on one server: load.c
with -s and without, in turns. Each client has a lock of its own; in the last row
all readers have one. CLIENTS (64) says how many are many.
"""
from __future__ import annotations

from collections.abc import Iterator

from measure import (Path, Run, Runs, costs, cpu_per_cycle, in_pairs, load,
                     setting, output, pids, server_pids, show)
from stack import started

SECONDS = setting("SECONDS_RUN", 2)
CLIENTS = int(setting("CLIENTS", 64))
# name: clients, what else the readers do
CASES = {
    "one": (1, []),
    "few": (8, []),
    "many": (CLIENTS, []),
    "many of one lock": (CLIENTS, ["-r", "bench:readers"]),
}


def play() -> Iterator[Run]:
    with started(log_level="warn") as stack:
        port = stack.start_server(0)
        used = costs(nodes=pids(stack.nodes), server=server_pids(stack))

        def run(case: str, what: str) -> Run:
            clients, options = CASES[case]
            options = ["-s", *options] if what == "readers" else []
            return output(*load(port, clients, SECONDS, *used, *options))
        yield from in_pairs(3, list(CASES), ["readers", "writers"], run)


def row(name: str, readers: Runs, writers: Runs) -> dict[str, str]:
    def ratio(value) -> str:
        return f"{readers.ratio(writers, value):.2f}"
    return {"readers": name, "clients": str(CASES[name][0]),
            "cycles/s": readers.text("cycles_per_s"),
            "÷ writers": ratio("cycles_per_s"),
            "redlockd's CPU": ratio(cpu_per_cycle("server")),
            "nodes' CPU": ratio(cpu_per_cycle("nodes"))}


def tell(runs: Runs, path: Path, is_markdown: bool) -> None:
    show([row(name, runs.of(case=name, what="readers"),
              runs.of(case=name, what="writers"))
          for (name,) in runs.each("case")], is_markdown, is_named=True)
