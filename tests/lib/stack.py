# SPDX-License-Identifier: MIT
"""Five nodes and some servers, clients, and what came of it. REDLOCKD and TOOLS
name the binary and the folder of the load generator.
"""
from __future__ import annotations

import contextlib
import http.client
import json
import os
import ssl
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from ports import free_ports
from processes import end, spawn
from waiting import wait_until

TOOLS = os.environ.get("TOOLS", "build/release")
REDLOCKD = os.environ.get("REDLOCKD", f"{TOOLS}/redlockd")
NODES = 5


def ask(port: int, method: str, path: str, body: object = None,
        headers: dict[str, str] | None = None,
        scheme: str = "http") -> tuple[int, dict]:
    """Status 0: no answer; the text says why. No certificate is verified."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    if scheme == "https":
        connection = http.client.HTTPSConnection(
            "127.0.0.1", port, timeout=10,
            context=ssl._create_unverified_context())
    try:
        connection.request(method, path, json.dumps(body) if body else None,
                           {"Content-Type": "application/json"} | (headers or {}))
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else {}
    except (OSError, http.client.HTTPException, ValueError) as error:
        return 0, {"detail": repr(error)}
    finally:
        connection.close()


def metric(port: int, name: str) -> float:
    """The sum of those samples that begin so."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines
               if line.startswith(name))


class Client:
    """One connection that stays open."""

    def __init__(self, port: int, token: str = "") -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self.headers = {"Content-Type": "application/json"}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"

    def send(self, method: str, path: str, body: object = None) -> None:
        self.connection.request(method, path, json.dumps(body) if body else None,
                                self.headers)

    def read(self) -> tuple[int, dict]:
        answer = self.connection.getresponse()
        return answer.status, json.loads(answer.read())

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, dict]:
        self.send(method, path, body)
        return self.read()

    def expect(self, wanted: int) -> dict:
        """Reads an answer with this status."""
        status, body = self.read()
        if status != wanted:
            raise RuntimeError(f"{status} {body}")
        return body

    def acquire(self, resource: str) -> dict:
        """For a minute."""
        self.send("POST", "/locks", {"resource": resource, "ttl_ms": 60000})
        return self.expect(201)


class Stack:
    """Five nodes without persistence, unless options tell them otherwise, and
    servers. With a log level, servers log to stderr; otherwise to files."""

    def __init__(self, folder: Path, *node_options: str,
                 log_level: str = "") -> None:
        self.folder, self.node_options = folder, node_options
        self.log_level = log_level
        self.ports = free_ports(NODES)
        self.server_ports: dict[int, int] = {}
        self.nodes: list[subprocess.Popen[bytes]] = []
        self.servers: dict[int, subprocess.Popen[bytes]] = {}
        for node in range(NODES):
            self.nodes.append(self.start_node(node))

    @property
    def addresses(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self.ports]

    def start_node(self, node: int) -> subprocess.Popen[bytes]:
        folder = self.folder / str(node)
        folder.mkdir(exist_ok=True)
        with open(folder / "log", "ab") as log:
            return spawn("redis-server", "--port", str(self.ports[node]),
                         "--bind", "127.0.0.1", "--save", "", "--dir",
                         str(folder), *self.node_options, stdout=log)

    def start_server(self, server: int, *options: str, binary: str = REDLOCKD,
                     nodes: list[str] | None = None, port: int = 0) -> int:
        """On a port of its own, always the same, if none is given."""
        port = port or self.server_ports.get(server) or free_ports(1)[0]
        self.server_ports[server] = port
        scheme = "https" if "--tls-cert" in options else "http"
        level = ("--log-level", self.log_level) if self.log_level else ()
        with open(self.folder / f"server{server}.log", "ab") as log:
            self.servers[server] = spawn(
                binary, "--nodes", ",".join(nodes or self.addresses),
                "--listen", f"127.0.0.1:{port}", "--first-start", "yes", *level,
                *options, stderr=None if level else log)
        wait_until(lambda: ask(port, "GET", "/readyz", scheme=scheme)[0] == 200,
                   f"server {server} is ready")
        return port

    def info(self, node: int, section: str) -> dict[str, str]:
        text = subprocess.run(["redis-cli", "-p", str(self.ports[node]), "info",
                               section], check=True, capture_output=True,
                              text=True).stdout
        return dict(line.split(":", 1) for line in text.splitlines()
                    if ":" in line)

    def calls(self, command: str, *nodes: int) -> int:
        """How often these nodes, or all, ran a command."""
        found = [self.info(node, "commandstats").get(f"cmdstat_{command}", "")
                 for node in nodes or range(NODES)]
        return sum(int(text.split("=")[1].split(",")[0]) for text in found if text)

    def cpu_s(self, server: int) -> float:
        """Of its first thread: the loop, which does all but the logging."""
        text = Path(f"/proc/{self.servers[server].pid}/schedstat").read_text()
        return int(text.split()[0]) / 1e9

    def has_voted_s(self, node: int, port: int) -> float:
        """For how long; negative if it does not, or if others do not."""
        nodes = ask(port, "GET", "/nodes")[1]
        if nodes.get("voting") != NODES:
            return -1
        return nodes["nodes"][node]["state_age_ms"] / 1000

    def lose(self, node: int, port: int, is_killed: bool = False) -> float:
        """Returns after how many seconds all vote again. On a busy machine they
        may do so before this is scheduled again to see one that does not."""
        began = time.monotonic()
        if is_killed:
            end(self.nodes[node])
            self.nodes[node] = self.start_node(node)
        else:
            subprocess.run(["redis-cli", "-p", str(self.ports[node]),
                            "FLUSHALL"], check=True, capture_output=True)

        def votes_again() -> bool:
            asked = time.monotonic()
            return 0 <= self.has_voted_s(node, port) < asked - began

        wait_until(votes_again, "all vote again", 90)
        return time.monotonic() - began

    def end(self) -> None:
        for child in [*self.servers.values(), *self.nodes]:
            end(child)


@contextlib.contextmanager
def started(*node_options: str, log_level: str = "") -> Iterator[Stack]:
    with tempfile.TemporaryDirectory() as folder:
        stack = Stack(Path(folder), *node_options, log_level=log_level)
        try:
            yield stack
        finally:
            stack.end()
