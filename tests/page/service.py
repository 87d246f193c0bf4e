# SPDX-License-Identifier: MIT
"""The server behind the page, its nodes, and clients that lock."""
from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from typing import Any

from jobs import Job, at_work

# what clients may call a lock: markup, and marks that turn the text around
HOSTILE = ["<img src=x onerror=document.title='owned'>",
           "</bdi></td><script>document.title='owned'</script>",
           "javascript:document.title='owned'",
           "\u202etxt.exe\u2066 \"'&amp;<b>",
           "a" * 255]


@dataclasses.dataclass
class Lock:
    resource: str
    path: str
    token: str
    fencing_token: int


@dataclasses.dataclass
class Service:
    origin: str
    pid: int
    nodes: dict[str, int]  # host:port, pid

    def call(self, method: str, path: str, body: Any = None,
             token: str = "") -> tuple[int, dict[str, Any]]:
        headers = {"Content-Type": "application/json"} if body else {}
        if token:
            headers["X-Lock-Token"] = token
        request = urllib.request.Request(
            self.origin + path, json.dumps(body).encode() if body else None,
            headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=90) as answer:
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refusal:
            return refusal.code, json.load(refusal)

    def acquire(self, resource: str, **fields: Any) -> Lock:
        status, grant = self.call("POST", "/locks",
                                  {"resource": resource, "ttl_ms": 60000,
                                   **fields})
        assert status == 201, grant
        return Lock(resource, f"/locks/{grant['id']}", grant["token"],
                    grant["fencing_token"])

    def release(self, lock: Lock) -> None:
        status, answer = self.call("DELETE", lock.path, token=lock.token)
        assert status == 200, answer

    def wait_for(self, resource: str) -> Job:
        """A client that waits for the lock, and gives it back."""
        client = Job(lambda: self.release(self.acquire(resource, wait_ms=45000)))
        client.start()
        return client

    @staticmethod
    def redis(node: str, *command: str) -> None:
        host, port = node.rsplit(":", 1)
        subprocess.run(["redis-cli", "-h", host, "-p", port, *command],
                       check=True, capture_output=True, timeout=30)

    def lock_elsewhere(self, resource: str) -> None:
        """As a library without numbers does it."""
        for node in self.nodes:
            self.redis(node, "SET", resource, "a-value", "NX", "PX", "60000")

    def unlock_elsewhere(self, resource: str) -> None:
        for node in self.nodes:
            self.redis(node, "DEL", resource)

    def flush(self, node: str) -> None:
        """It forgets all locks."""
        self.redis(node, "FLUSHALL")

    @contextlib.contextmanager
    def paused(self, nodes: Iterable[str]) -> Iterator[None]:
        pids = [self.nodes[node] for node in nodes]
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)


def traffic(service: Service) -> contextlib.AbstractContextManager[None]:
    """Clients at work until the block ends; one in five finds a lock held."""
    def work(client: int, has_ended: threading.Event) -> None:
        turn = 0
        while not has_ended.wait(0.02):
            turn += 1
            name = f"traffic:{client}:{turn}"
            lock = service.acquire(name, ttl_ms=2000)
            if turn % 5 == 0:
                service.call("POST", "/locks", {"resource": name})
            service.release(lock)
    return at_work(work, 2)
