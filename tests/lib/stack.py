"""Five nodes and up to three servers, clients, and what came of it. REDLOCKD and
TOOLS name the binary and the folder of the load generator, CLIENTS how many
clients that has.
"""
from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from ports import free_ports
from waiting import wait_until

TOOLS = os.environ.get("TOOLS", "build/release")
REDLOCKD = os.environ.get("REDLOCKD", f"{TOOLS}/redlockd")
CLIENTS = int(os.environ.get("CLIENTS", "64"))
NODES, SERVERS = 5, 3


def kill(process: subprocess.Popen[bytes], number: int) -> None:
    process.send_signal(number)
    process.wait()


def ask(port: int, method: str, path: str, body: object = None,
        headers: dict[str, str] | None = None) -> tuple[int, dict]:
    """Status 0: no answer; the text says why."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
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
    """Five nodes without persistence, and up to three servers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ports = free_ports(NODES + SERVERS)
        self.nodes: list[subprocess.Popen[bytes]] = []
        self.servers: dict[int, subprocess.Popen[bytes]] = {}
        for node in range(NODES):
            self.nodes.append(self.start_node(node))

    def start_node(self, node: int) -> subprocess.Popen[bytes]:
        folder = self.folder / str(node)
        folder.mkdir(exist_ok=True)
        with open(folder / "log", "ab") as log:
            return subprocess.Popen(
                ["redis-server", "--port", str(self.ports[node]), "--bind",
                 "127.0.0.1", "--save", "", "--dir", str(folder)], stdout=log)

    def start_server(self, server: int, *options: str) -> int:
        port = self.ports[NODES + server]
        nodes = ",".join(f"127.0.0.1:{one}" for one in self.ports[:NODES])
        with open(self.folder / f"server{server}.log", "ab") as log:
            self.servers[server] = subprocess.Popen(
                [REDLOCKD, "--nodes", nodes, "--listen", f"127.0.0.1:{port}",
                 "--first-start", "yes", *options], stderr=log)
        wait_until(lambda: ask(port, "GET", "/readyz")[0] == 200,
                   f"server {server} is ready")
        return port

    def cpu_s(self, server: int) -> float:
        """Of its first thread: the loop, which does all but the logging."""
        text = Path(f"/proc/{self.servers[server].pid}/schedstat").read_text()
        return int(text.split()[0]) / 1e9

    def has_voted_s(self, node: int, port: int) -> float:
        """For how long; negative if it does not, or if others do not."""
        nodes = ask(port, "GET", "/nodes")[1]
        if nodes.get("voting") != NODES:
            return -1
        return nodes["nodes"][node]["since_ms"] / 1000

    def lose(self, node: int, port: int, is_killed: bool = False) -> float:
        """Returns after how many seconds all vote again. On a busy machine they
        may do so before this is scheduled again to see one that does not."""
        began = time.monotonic()
        if is_killed:
            kill(self.nodes[node], signal.SIGKILL)
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
        for server in self.servers.values():
            kill(server, signal.SIGKILL)
        for node in self.nodes:
            kill(node, signal.SIGKILL)


class Load:
    """64 clients of the load generator, for so many seconds at most."""

    def __init__(self, port: int, seconds: float, token: str = "",
                 clients: int = CLIENTS) -> None:
        self.child = subprocess.Popen(
            [f"{TOOLS}/load", "-l", "5000", *(["-a", token] if token else []),
             f"127.0.0.1:{port}", str(clients), str(seconds)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def end(self) -> dict[str, float]:
        out, errors = self.child.communicate()
        if errors:
            print(errors[:800])
        words = out.split()
        return {name: float(value)
                for name, value in zip(words[::2], words[1::2])}


class Results:
    def __init__(self) -> None:
        self.passed = self.failed = 0

    def check(self, what: str, is_so: bool) -> None:
        print(f"  {'ok   ' if is_so else 'FAILS'} {what}", flush=True)
        self.passed += is_so
        self.failed += not is_so


Scene = Callable[[Stack, Results, bool], None]


def play(scenes: dict[str, Scene]) -> None:
    """Those that the command line names, else all; --short plays less of each."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("scenes", nargs="*", default=list(scenes))
    options = parser.parse_args()
    results = Results()
    for name in options.scenes or scenes:
        with tempfile.TemporaryDirectory() as folder:
            stack = Stack(Path(folder))
            try:
                scenes[name](stack, results, options.short)
            finally:
                stack.end()
    print(f"{results.passed} passed, {results.failed} failed")
    sys.exit(results.failed > 0)
