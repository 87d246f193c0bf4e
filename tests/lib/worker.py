# SPDX-License-Identifier: MIT
"""A client that works while what it works with is changed."""
from __future__ import annotations

import threading
import time

from jobs import Job
from stack import ask

AGAIN_S = 0.2  # redlockd says how long; no lock here ends before


class Worker(Job):
    """Takes a lock, extends it twice, releases it, again and again; a refused or
    lost request is tried again at the next server, and once more at each: a lock
    that is younger than 100 ms may be on three nodes, one of which is replaced
    now, while the next server starts."""

    def __init__(self, number: int, ports: list[int],
                 has_ended: threading.Event, ttl_ms: int,
                 pause_s: float = 0) -> None:
        super().__init__()
        self.number, self.ports, self.has_ended = number, ports, has_ended
        self.ttl_ms, self.pause_s = ttl_ms, pause_s
        self.requests = self.retries = 0
        self.failures: list[str] = []

    def ask(self, *request: object) -> dict:
        self.requests += 1
        first = (self.number + self.requests) % len(self.ports)
        said: list[str] = []
        is_unknown = False
        for turn in range(2 * len(self.ports)):
            if turn == len(self.ports):
                time.sleep(AGAIN_S)
            port = self.ports[(first + turn) % len(self.ports)]
            status, answer = ask(port, *request)  # type: ignore[arg-type]
            if status in (200, 201):
                return answer
            if status == 404 and is_unknown and request[0] == "DELETE":
                return answer  # it was released, and only the answer was lost
            is_unknown |= status in (0, 503)
            self.retries += 1
            said.append(f"{port}: {status} {answer}")
        self.failures.append(f"{request[0]} {', '.join(said)}")
        return {}

    def work(self) -> None:
        while not self.has_ended.wait(self.pause_s):
            name = f"worker:{self.number}:{self.requests}"
            lock = self.ask("POST", "/locks",
                            {"resource": name, "ttl_ms": self.ttl_ms})
            token = lock.get("token", "")
            headers = {"X-Lock-Token": token}
            for _ in range(2):
                self.ask("PUT", f"/locks/{name}/extend",
                         {"ttl_ms": self.ttl_ms, "token": token}, headers)
            self.ask("DELETE", f"/locks/{name}", None, headers)
