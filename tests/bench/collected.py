"""Clients of one process whose calls are collected into batches, as the packages
do it, beside the same clients with a request for each call: in turns, on one
server and its five nodes.

CLIENTS says how many, LINES how many requests may be under way at a time. Before
anything is measured, the load generator shows that it notices answers that are
wrong.
"""
from __future__ import annotations

from collections.abc import Iterator

import spoiled
from measure import (CPUS, Run, Runs, costs, cpu_per_counted, in_pairs, load,
                     numbers, output, pids, server_pids, setting, show,
                     words)
from stack import started


def play() -> Iterator[Run]:
    spoiled.check()
    seconds = setting("SECONDS_RUN", 2)
    with started(log_level="error") as stack:
        port = stack.start_server(0)
        used = costs(client=[0], server=server_pids(stack),
                     nodes=pids(stack.nodes))

        def run(clients: int, lines: str) -> Run:
            batches = stack.calls("evalsha")
            found = output(*load(port, clients, seconds, *used,
                                 *(["-b", lines] if lines else [])))
            return {"seconds": seconds, **found,
                    "commands": stack.calls("evalsha") - batches}
        yield from in_pairs(7, numbers("CLIENTS", "1 8 16 64 256"),
                            ["", *words("LINES", "1 2 4")], run)


def names(lines: str) -> str:
    return f"{lines} at most" if lines else "of each"


def row(runs: Runs, clients: int, lines: str) -> dict[str, str]:
    each, alone = (runs.of(case=clients, what=what) for what in (lines, ""))
    cells = {"clients": str(clients),
             "requests under way": names(lines),
             "cycles/s": each.text("cycles_per_s"),
             "ratio": f"{each.ratio(alone, 'cycles_per_s'):.2f}×",
             "p50 ms": each.ms("p50"), "p99 ms": each.ms("p99")}
    for who in CPUS:
        cells[f"{who}, µs a cycle"] = each.text(cpu_per_counted(who), 1)
    return cells | {"commands to the nodes a cycle": each.text(
        lambda run: run["commands"] / run["cycles"], 2)}


def tell(runs: Runs, _path: object, is_markdown: bool) -> bool:
    show([row(runs, *case) for case in runs.each("case", "what")], is_markdown)
    return all(run["cycles_per_s"] > 0 for run in runs)
