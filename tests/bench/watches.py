# SPDX-License-Identifier: MIT
"""How soon a watch tells of a change, and what watches cost redlockd.

  own     the locks change hands through the server that is asked
  other   through another server
  crowd   10,000 clients watch 100 locks that nobody takes or releases
"""
from __future__ import annotations

import socket
import statistics
import threading
import time

from jobs import Job
from measure import Results, allow_descriptors, request
from stack import Client, Stack, metric

LOCKS, CHANGES = 50, 20          # CHANGES of each lock: a grant or a release
CROWD, CROWD_LOCKS, CROWD_S = 10000, 100, 20
OWN_S, OTHER_S, CROWD_CORE = 0.05, 1.2, 0.05
PAUSE_S = 1.1                    # a holder stays for longer than a second


class Watched:
    """One lock: a watcher, and a client that takes and releases it."""

    def __init__(self, name: str, watching: int, changing: int,
                 changes: int) -> None:
        self.name, self.changes = name, changes
        self.watcher, self.holder = Client(watching), Client(changing)
        self.told: dict[int, float] = {}    # by the holder's number; 0: free
        self.took: list[float] = []
        self.is_told = threading.Condition()

    def watch(self) -> None:
        """Until the last change was seen."""
        after, seen = "free", 0
        while seen < self.changes:
            _, body = self.watcher.ask(
                "GET", f"/locks/{self.name}?after={after}&wait_ms=20000")
            if body["version"] == after:
                continue
            after, seen = body["version"], seen + 1
            with self.is_told:
                self.told[seen] = time.monotonic()
                self.is_told.notify()

    def change(self) -> None:
        for number in range(1, self.changes + 1):
            if number % 2:
                lock = self.holder.acquire(self.name)
            else:
                self.holder.send("DELETE", f"/locks/{self.name}",
                                 {"token": lock["token"]})
                self.holder.expect(200)
            done = time.monotonic()
            with self.is_told:
                if not self.is_told.wait_for(lambda: number in self.told, 30):
                    raise RuntimeError(f"{self.name}: change {number} unseen")
            self.took.append(max(0.0, self.told[number] - done))
            time.sleep(PAUSE_S)


def measure(results: Results, ports: tuple[int, int], limit_s: float,
            is_short: bool) -> None:
    locks = [Watched(f"watched:{number}", *ports, 2 if is_short else CHANGES)
             for number in range(4 if is_short else LOCKS)]
    watchers = [Job(one.watch) for one in locks]
    changers = [Job(one.change) for one in locks]
    for thread in watchers:
        thread.start()
    time.sleep(1)
    for thread in changers:
        thread.start()
        time.sleep(PAUSE_S / len(changers))  # not all at once
    for thread in changers + watchers:
        thread.join()
    took = sorted(seconds for one in locks for seconds in one.took)
    p99 = took[len(took) * 99 // 100]
    results.check(f"{len(took)} changes: p50 {statistics.median(took) * 1000:.0f} "
                  f"ms, p99 {p99 * 1000:.0f} ms", len(took) > 0 and
                  (is_short or p99 <= limit_s))


def own(stack: Stack, results: Results, is_short: bool) -> None:
    port = stack.start_server(0)
    measure(results, (port, port), OWN_S, is_short)


def other(stack: Stack, results: Results, is_short: bool) -> None:
    ports = stack.start_server(0), stack.start_server(1)
    measure(results, ports, OTHER_S, is_short)


def crowd(stack: Stack, results: Results, is_short: bool) -> None:
    seconds = 2 if is_short else CROWD_S
    allow_descriptors()
    port = stack.start_server(0)
    # as many may watch: fewer if descriptors are scarce
    count = int(min(200 if is_short else CROWD,
                    metric(port, "redlockd_waiters_max ")))
    client = Client(port)
    numbers = [client.acquire(f"crowd:{number}")["fencing_token"]
               for number in range(CROWD_LOCKS)]
    watchers = []
    for number in range(count):
        lock = number % CROWD_LOCKS
        watcher = socket.create_connection(("127.0.0.1", port))
        watcher.sendall(request("GET", f"/locks/crowd:{lock}?after="
                                f"{numbers[lock]}&wait_ms=45000"))
        watchers.append(watcher)
    time.sleep(1)
    before, began = stack.cpu_s(0), time.monotonic()
    time.sleep(seconds)
    share = (stack.cpu_s(0) - before) / (time.monotonic() - began)
    waiting = 0
    for watcher in watchers:
        watcher.setblocking(False)
        try:
            watcher.recv(1)
        except BlockingIOError:
            waiting += 1
        watcher.close()
    results.check(f"{waiting} of {count} watch {CROWD_LOCKS} locks: "
                  f"{share * 100:.2f}% of a core", waiting == count and
                  (is_short or share <= CROWD_CORE))


SCENES = {"own": own, "other": other, "crowd": crowd}
