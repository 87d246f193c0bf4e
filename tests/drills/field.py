# SPDX-License-Identifier: MIT
"""Nodes with clocks of their own, redlockd over them, a Prometheus with our
rules, and what they say while somebody breaks them."""
from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

from clocks import Clock
from jobs import Job
from ports import free_ports
from processes import end, spawn
from prometheus import Prometheus
from stack import REDLOCKD, ask
from waiting import wait_until

MAX_TTL_MS = 6000  # so that a quarantine ends within a drill
SOON_S = 40
SERVERS = 2


class Node:
    """One Redis that keeps its data across restarts."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder / name, name
        [self.port] = free_ports(1)
        self.folder.mkdir()
        self.clock = Clock(folder / f"{name}.clock")
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self.folder.parent / f"{self.name}.log").open("ab") as log:
            self.process = spawn(
                "redis-server", "--bind", "127.0.0.1", "--port", self.port,
                "--dir", self.folder, "--save", "", "--appendonly", "yes",
                "--appendfsync", "always", stdout=log, stderr=log,
                env=self.clock.environment())

    def signal(self, number: int) -> None:
        assert self.process
        self.process.send_signal(number)

    def has_ended(self) -> bool:
        return self.process is None or self.process.poll() is not None

    def kill(self) -> None:
        end(self.process)

    def shut(self) -> None:
        """As a service manager does."""
        self.signal(signal.SIGTERM)
        assert self.process
        self.process.wait()

    def says(self, *command: str) -> str:
        return subprocess.run(
            ["redis-cli", "-p", str(self.port), *command],
            capture_output=True, text=True, check=False).stdout.strip()


class Server:
    def __init__(self, folder: Path, number: int) -> None:
        [self.port] = free_ports(1)
        self.log = folder / f"server{number}.log"
        self.log.touch()
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, nodes: dict[str, Node], *options: str) -> None:
        listed = ",".join(f"{name}=127.0.0.1:{node.port}"
                          for name, node in nodes.items())
        with self.log.open("ab") as log:
            self.process = spawn(
                REDLOCKD, "--nodes", listed, "--listen",
                f"127.0.0.1:{self.port}", "--max-ttl-ms", MAX_TTL_MS,
                "--drain-ms", "500", *options, stderr=log)

    def stop(self) -> None:
        """It drains."""
        assert self.process
        self.process.terminate()
        self.process.wait()

    def kill(self) -> None:
        end(self.process)

    def readiness(self) -> tuple[int, dict]:
        return ask(self.port, "GET", "/readyz")


class Field:
    """It watches itself: what /readyz and /nodes said, ten times a second, and
    which alerts were pending or fired."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder = folder
        self.names = "abcde"[:nodes]
        self.nodes = {name: Node(folder, name) for name in self.names}
        self.servers = [Server(folder, number) for number in range(SERVERS)]
        self.options: tuple[str, ...] = ()
        self.clients: subprocess.Popen[bytes] | None = None
        self.prometheus: Prometheus | None = None
        self.has_ended = threading.Event()
        self.watcher = Job(self.watch)
        self.readyz: list[tuple[float, int, int]] = []
        self.states: list[tuple[float, str, str]] = []
        self.alerts: list[tuple[float, str, str]] = []

    # ---- life

    def start(self) -> None:
        for node in self.nodes.values():
            node.start()
        for node in self.nodes.values():
            wait_until(lambda n=node: n.says("PING") == "PONG", node.name)
        for server in self.servers:
            server.start(self.nodes)
        self.wait_votes()
        self.start_prometheus()
        self.watcher.start()
        with (self.folder / "clients.jsonl").open("wb") as out:
            self.clients = spawn(
                sys.executable, Path(__file__).with_name("clients.py"),
                *(server.port for server in self.servers), stdout=out)
        wait_until(lambda: sum("held:" in line for line in
                               self.lines()) >= 2, "clients hold locks")

    def end(self) -> None:
        self.has_ended.set()
        if self.watcher.ident:
            self.watcher.join()
        for process in [self.clients, self.prometheus and self.prometheus.process,
                        *(server.process for server in self.servers),
                        *(node.process for node in self.nodes.values())]:
            end(process)

    def start_prometheus(self) -> None:
        if not shutil.which("prometheus"):
            return
        self.prometheus = Prometheus(self.folder,
                                     [server.port for server in self.servers])
        wait_until(lambda: self.prometheus.alerts() is not None, "Prometheus runs",
                   SOON_S)
        time.sleep(3)
        wait_until(lambda: not self.prometheus.alerts(), "no alert is pending", SOON_S)

    def wait_votes(self, limit_s: float = SOON_S) -> None:
        for server in self.servers:
            wait_until(lambda s=server: s.readiness()[1].get("voting")
                       == len(self.nodes), "all nodes vote", limit_s)

    def roll(self, *options: str) -> None:
        """Servers restart one after the other."""
        self.options = options
        for server in self.servers:
            server.stop()
            server.start(self.nodes, *options)
            wait_until(lambda s=server: s.readiness()[0] == 200,
                       "the server is ready", SOON_S)
        self.wait_votes()

    # ---- what it says

    def watch(self) -> None:
        turn = 0
        while not self.has_ended.wait(0.1):
            turn += 1
            now = time.monotonic()
            for number, server in enumerate(self.servers):
                self.readyz.append((now, number, server.readiness()[0]))
                for node in ask(server.port, "GET", "/nodes")[1].get(
                        "nodes", []):
                    if not node["voting"]:
                        self.states.append((now, node["node"], node["state"]))
            if self.prometheus and turn % 10 == 0:
                self.alerts += [(now, *alert) for alert in
                                self.prometheus.alerts() or []]

    def lines(self) -> list[str]:
        """What the clients have told; the last line may be half of one."""
        text = (self.folder / "clients.jsonl").read_text()
        return text[:text.rfind("\n") + 1].splitlines()

    def sizes(self) -> list[int]:
        return [server.log.stat().st_size for server in self.servers]

    def logged(self, sizes: list[int]) -> list[str]:
        """The lines at warn and error since the logs had these sizes."""
        found: list[str] = []
        for server, size in zip(self.servers, sizes):
            text = server.log.read_bytes()[size:].decode(errors="replace")
            found += [line for line in text.splitlines()
                      if re.search(r" level=(warn|error) ", line)]
        return found
