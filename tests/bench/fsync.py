"""redlockd on nodes that sync each write to the disk, beside what such nodes can
do at most: redis-benchmark sends bare SETs to one of them, and to all five at
once, with as many clients each; in turns. CLIENTS changes what is run.
"""
from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

from measure import (Run, Runs, in_turns, load, setting, numbers, output, pairs,
                     show)
from processes import end, spawn
from stack import NODES, Stack, started

SECONDS = setting("SECONDS_RUN", 3)


# ---- what is run ------------------------------------------------------------

def fsyncs(stack: Stack, nodes: list[int]) -> int:
    """How often they wrote to their files, each time with an fsync: all their
    writes but those of replies. To be asked of nodes that have nothing to do."""
    count = 0
    for node in nodes:
        text = Path(f"/proc/{stack.nodes[node].pid}/io").read_text()
        count += int(text.split("syscw: ")[1].split()[0])
        count -= int(stack.info(node, "stats")["total_writes_processed"])
    return count


def bare(stack: Stack, clients: int, nodes: list[int]) -> Run:
    """The rate of the slowest node, and the SETs and fsyncs of all of them from
    the start to the end."""
    def times_and_sets() -> list[tuple[float, int]]:
        return [(time.monotonic(), stack.calls("set", node)) for node in nodes]
    sets, synced = stack.calls("set", *nodes), fsyncs(stack, nodes)
    children = [spawn("redis-benchmark", "-p", stack.ports[node], "-t", "set",
                      "-q", "-c", clients, "-n", 1000000000, "-r", 100000, "-d",
                      64, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                for node in nodes]
    time.sleep(0.5)
    before = times_and_sets()
    time.sleep(SECONDS)
    after = times_and_sets()
    for child in children:
        end(child)
    return {"sets_per_s": min((then[1] - first[1]) / (then[0] - first[0])
                              for first, then in zip(before, after)),
            "sets": stack.calls("set", *nodes) - sets,
            "fsyncs": fsyncs(stack, nodes) - synced}


def play() -> Iterator[Run]:
    every = list(range(NODES))
    # no rewriting of the files meanwhile
    with started("--appendonly", "yes", "--appendfsync", "always",
                 "--auto-aof-rewrite-percentage", "0",
                 log_level="error") as stack:
        port = stack.start_server(0)
        for pair in pairs(5):
            for clients in numbers("CLIENTS", "1 8 64 256"):
                for what in in_turns(["one", "redlockd", "five"], pair):
                    labels = {"what": what, "pair": pair, "clients": clients}
                    if what == "redlockd":
                        synced = fsyncs(stack, every)
                        run = output(*load(port, clients, SECONDS))
                        run["fsyncs"] = fsyncs(stack, every) - synced
                    else:  # each node in turn
                        run = bare(stack, clients, every if what == "five"
                                   else [(pair - 1) % NODES])
                    yield labels | run


# ---- what it shows ----------------------------------------------------------

def calls(run: Run) -> float:
    """A cycle is two"""
    return 2 * run["cycles_per_s"]


def syncs(run: Run) -> float:
    """Of a cycle, on one node; over the warm-up too"""
    return run["fsyncs"] / NODES / run["cycles"]


def sets_a_sync(run: Run) -> float:
    return run["sets"] / run["fsyncs"]


def row(clients: int, ours: Runs, one: Runs, five: Runs) -> dict[str, str]:
    return {"clients": f"{clients:,}", "SETs/s, one node": one.text("sets_per_s"),
            "five at once": five.text("sets_per_s"),
            "redlockd, cycles/s": ours.text("cycles_per_s"),
            "calls/s": ours.text(calls),
            "÷ one node": f"{ours.ratio(one, calls, 'sets_per_s'):.2f}",
            "÷ five": f"{ours.ratio(five, calls, 'sets_per_s'):.2f}",
            "p50 ms": ours.ms("p50", 1), "p99 ms": ours.ms("p99", 1),
            "SETs an fsync, one": one.text(sets_a_sync, 1),
            "five": five.text(sets_a_sync, 1),
            "calls an fsync": ours.text(lambda run: 2 / syncs(run), 1),
            "fsyncs a cycle": ours.text(syncs, 3)}


def tell(runs: Runs, path: Path, is_markdown: bool) -> None:
    show([row(clients, *(runs.of(clients=clients, what=what)
                         for what in ("redlockd", "one", "five")))
          for (clients,) in sorted(runs.each("clients"))], is_markdown)
