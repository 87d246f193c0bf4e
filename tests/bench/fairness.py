# SPDX-License-Identifier: MIT
"""Clients that wait for one lock on several servers: how often each client gets
it, and its worst wait. Each holds the lock for HOLD_MS (100), releases it and
asks for it again at once.

SPLITS tells how many clients each server has: "3+1", as many servers as there
are numbers. "3+0": the second server waited for the lock, too, until it was
paused; it still counts as one that waits.
"""
from __future__ import annotations

import signal
import statistics
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from jobs import together
from measure import Path, Run, Runs, setting, pairs, show, words
from stack import Client, Stack, started

SECONDS = setting("SECONDS_RUN", 10)
HOLD_MS = setting("HOLD_MS", 100)
SPLITS = words("SPLITS", "4 1+1 3+1 7+1 4+4 2+2+2 4+0")
WARM_UP_S, WAIT_MS = 1.5, 30000  # until all have subscribed


@dataclass
class Waiter:
    """A client, and what it got since the moment from which grants count."""
    port: int
    server: int
    grants: int = 0
    worst_s: float = 0.0
    failures: list[str] = field(default_factory=list)

    def play(self, resource: str, begin: float, end: float) -> None:
        client = Client(self.port)
        wanted = {"resource": resource, "ttl_ms": 30000, "wait_ms": WAIT_MS}
        while time.monotonic() < end:
            asked = time.monotonic()
            status, lock = client.ask("POST", "/locks", wanted)
            granted = time.monotonic()
            if asked >= begin:  # also one that has not ended when the run ends
                self.worst_s = max(self.worst_s, min(granted, end) - asked)
            if status == 201:
                self.grants += begin <= granted < end
                time.sleep(HOLD_MS / 1000)
                status, lock = client.ask("DELETE", f"/locks/{resource}",
                                          {"token": lock["token"]})
            if status != 200:
                self.failures.append(f"{status} {lock}")


def pause(stack: Stack, server: int, port: int, resource: str) -> None:
    """While it waits for the lock; its client leaves it later."""
    holder, waiter = Client(port), Client(port)
    lock = holder.acquire(resource)
    waiter.send("POST", "/locks", {"resource": resource, "wait_ms": WAIT_MS})
    time.sleep(0.5)  # until it has subscribed to releases
    waiter.connection.close()
    holder.ask("DELETE", f"/locks/{resource}", {"token": lock["token"]})
    stack.servers[server].send_signal(signal.SIGSTOP)


def run(stack: Stack, ports: list[int], split: list[int],
        resource: str) -> Run:
    for server, count in enumerate(split):
        if count == 0:
            pause(stack, server, ports[server], resource)
    waiters = [Waiter(ports[server], server)
               for server, count in enumerate(split) for _ in range(count)]
    begin = time.monotonic() + WARM_UP_S
    together(partial(one.play, resource, begin, begin + SECONDS)
             for one in waiters)
    for server, count in enumerate(split):
        if count == 0:
            stack.servers[server].send_signal(signal.SIGCONT)
    failures = [text for one in waiters for text in one.failures]
    print("\n".join(failures[:10]), end="", file=sys.stderr)
    grants = [one.grants for one in waiters]
    each = [statistics.mean(one.grants for one in waiters
                            if one.server == server)
            for server, count in enumerate(split) if count > 0]
    return {"each": each, "grants_per_s": sum(grants) / SECONDS,
            "fairness": min(grants) / max(1, max(grants)),
            "worst_s": max(one.worst_s for one in waiters),
            "failures": len(failures)}


def play() -> Iterator[Run]:
    splits = {name: [int(count) for count in name.split("+")]
              for name in SPLITS}
    with started() as stack:
        ports = [stack.start_server(server)
                 for server in range(max(map(len, splits.values())))]
        for pair in pairs(3):
            for name, split in splits.items():
                yield {"pair": pair, "clients": name, **run(
                    stack, ports, split, f"fair:{name}:{pair}")}


def row(name: str, runs: Runs) -> dict[str, str]:
    """Of each server the grants of a client, in the median of the runs."""
    each = zip(*(run["each"] for run in runs))
    return {"clients": name, "grants/s": runs.text("grants_per_s", 1),
            "each gets": ", ".join(f"{statistics.median(one):.0f}"
                                   for one in each),
            "fewest ÷ most": runs.text("fairness", 2),
            "in the worst run": f"{min(run['fairness'] for run in runs):.2f}",
            "worst wait s": runs.text("worst_s", 2),
            "worst of all": f"{max(run['worst_s'] for run in runs):.2f}"}


def tell(runs: Runs, path: Path, is_markdown: bool) -> None:
    show([row(name, runs.of(clients=name)) for (name,) in runs.each("clients")],
         is_markdown, is_named=True)
