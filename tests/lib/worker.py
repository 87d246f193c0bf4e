"""A client that works while what it works with is changed."""
from __future__ import annotations

import threading

from stack import ask


class Worker(threading.Thread):
    """Takes a lock, extends it twice, releases it, again and again; a refused or
    lost request is tried once more, at the next server."""

    def __init__(self, number: int, ports: list[int],
                 has_ended: threading.Event, ttl_ms: int,
                 pause_s: float = 0) -> None:
        super().__init__(daemon=True)
        self.number, self.ports, self.has_ended = number, ports, has_ended
        self.ttl_ms, self.pause_s = ttl_ms, pause_s
        self.requests = self.retries = 0
        self.failures: list[str] = []

    def ask(self, *request: object) -> dict:
        self.requests += 1
        first = (self.number + self.requests) % len(self.ports)
        said = []
        for port in (self.ports[first],
                     self.ports[(first + 1) % len(self.ports)]):
            status, answer = ask(port, *request)  # type: ignore[arg-type]
            if status in (200, 201):
                return answer
            self.retries += 1
            said.append(f"{port}: {status} {answer}")
        self.failures.append(f"{request[0]} {', '.join(said)}")
        return {}

    def run(self) -> None:
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
