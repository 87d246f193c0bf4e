#!/usr/bin/env python3
"""Clients that wait for one lock on several servers: how often each client gets
it, and its worst wait. Each holds the lock for HOLD_MS (100), releases it and
asks for it again at once; PAIRS runs (3) of SECONDS_RUN seconds (10).

SPLITS tells how many clients each server has: "3+1", as many servers as there
are numbers. "3+0": the second server waited for the lock, too, until it was
paused; it still counts as one that waits.
"""
from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
from stack import Client, Stack
from table import show

PAIRS = int(os.environ.get("PAIRS", "3"))
SECONDS = float(os.environ.get("SECONDS_RUN", "10"))
HOLD_MS = float(os.environ.get("HOLD_MS", "100"))
SPLITS = os.environ.get("SPLITS", "4 1+1 3+1 7+1 4+4 2+2+2 4+0").split()
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
        resource: str) -> list[Waiter]:
    for server, count in enumerate(split):
        if count == 0:
            pause(stack, server, ports[server], resource)
    waiters = [Waiter(ports[server], server)
               for server, count in enumerate(split) for _ in range(count)]
    begin = time.monotonic() + WARM_UP_S
    threads = [threading.Thread(target=one.play,
                                args=(resource, begin, begin + SECONDS))
               for one in waiters]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for server, count in enumerate(split):
        if count == 0:
            stack.servers[server].send_signal(signal.SIGCONT)
    return waiters


def row(name: str, runs: list[list[Waiter]]) -> list[str]:
    """Of each server the grants of a client, in the median of the runs."""
    def each(server: int) -> str:
        of = [[one.grants for one in run if one.server == server]
              for run in runs]
        return f"{statistics.median(map(statistics.mean, of)):.0f}"

    def median(value: list[float]) -> float:
        return statistics.median(value)
    servers = sorted({one.server for one in runs[0]})
    ratios = [min(one.grants for one in run) /
              max(1, max(one.grants for one in run)) for run in runs]
    rates = [sum(one.grants for one in run) / SECONDS for run in runs]
    waits = [max(one.worst_s for one in run) for run in runs]
    return [name, f"{median(rates):.1f}", ", ".join(map(each, servers)),
            f"{median(ratios):.2f}", f"{min(ratios):.2f}",
            f"{median(waits):.2f}", f"{max(waits):.2f}"]


def main() -> None:
    splits = {name: [int(count) for count in name.split("+")]
              for name in SPLITS}
    found: dict[str, list[list[Waiter]]] = {name: [] for name in SPLITS}
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder))
        try:
            ports = [stack.start_server(server, *(["--first-start", "yes"]
                                                  if server == 0 else []))
                     for server in range(max(map(len, splits.values())))]
            for pair in range(PAIRS):
                for name, split in splits.items():
                    print(f"{pair + 1}: {name} …", file=sys.stderr)
                    found[name].append(run(stack, ports, split,
                                           f"fair:{name}:{pair}"))
        finally:
            stack.end()
    show([["clients", "grants/s", "each gets", "fewest ÷ most", "in the worst run",
           "worst wait s", "in the worst run"]]
         + [row(name, runs) for name, runs in found.items()],
         is_markdown=False, is_named=True)
    failures = [text for runs in found.values() for run in runs
                for one in run for text in one.failures]
    print("\n".join(failures[:10] + [f"failures: {len(failures)}"]))
    sys.exit(len(failures) > 0)


if __name__ == "__main__":
    main()
