# SPDX-License-Identifier: MIT
"""Five Redis, two redlockd with clients at work, and a Prometheus that has our
rules: all on loopback, in one folder."""
from __future__ import annotations

import contextlib
import pathlib
import re
import tempfile
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

from jobs import at_work
from processes import end
from prometheus import RULES, Prometheus
from stack import NODES, Stack, ask, metric
from waiting import wait_until

SERVERS = 2
WAIT_S = 60


class World(Stack):
    def __init__(self, folder: pathlib.Path) -> None:
        # others are an alert
        super().__init__(folder, "--appendonly", "yes", "--appendfsync", "always")
        self.prometheus: Prometheus | None = None

    def start(self) -> None:
        for server in range(SERVERS):
            self.start_server(server)
        for port in self.server_ports.values():
            wait_until(lambda: metric(port, "redlockd_quorum_margin ") ==
                       NODES - NODES // 2 - 1, "all nodes vote", WAIT_S)

    def metrics(self, port: int) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics",
                                    timeout=5) as answer:
            return str(answer.read().decode())

    def start_prometheus(self) -> None:
        """With our rules, but faster: whatever lasts minutes takes 1 s."""
        rules = self.folder / "rules.yml"
        rules.write_text(re.sub(r"^( +for: ).*", r"\g<1>1s", RULES.read_text(),
                                flags=re.M))
        self.prometheus = Prometheus(self.folder, list(self.server_ports.values()),
                                     rules)
        self.query = self.prometheus.query
        wait_until(lambda: len(self.query('up{job="redlockd"} == 1')) == SERVERS,
                   "Prometheus reaches the servers", WAIT_S)

    def alerts(self) -> set[str]:
        """Those that fire."""
        return {name for name, state in self.prometheus.alerts() or []
                if state == "firing"}

    def end(self) -> None:
        if self.prometheus:
            end(self.prometheus.process)
        super().end()


def cycle(port: int, name: str) -> None:
    """Acquire, extend and release; a lock that somebody holds, and a permit."""
    what: dict[str, Any] = {"resource": "shared" if name.endswith("7") else name}
    if name.endswith("5"):
        what = {"resource": "pool", "limit": 1}
    status, lock = ask(port, "POST", "/locks",
                       {**what, "ttl_ms": 2000, "wait_ms": 500})
    if status != 201:
        return
    path, token = f"/locks/{lock['id']}", {"X-Lock-Token": lock["token"]}
    ask(port, "POST", "/locks", what)
    ask(port, "PUT", f"{path}/extend", None, token)
    ask(port, "DELETE", path, None, token)


def clients(world: World) -> contextlib.AbstractContextManager[None]:
    """Two at each server: cycles of acquire, extend and release, locks that
    somebody holds, waits for them, permits, and now and then one that
    leaves."""
    def work(client: int, has_ended: threading.Event) -> None:
        port, turn = world.server_ports[client % SERVERS], 0
        while not has_ended.wait(0.02):
            turn += 1
            cycle(port, f"{client // SERVERS}:{turn % 50}")
    return at_work(work, 2 * SERVERS)


@contextlib.contextmanager
def running() -> Iterator[World]:
    with tempfile.TemporaryDirectory() as folder:
        one = World(pathlib.Path(folder))
        try:
            one.start()
            one.start_prometheus()
            yield one
        finally:
            one.end()
