#!/usr/bin/env python3
"""Nodes that forget under load: when do they vote again, and what do clients
notice? Then limits that change by a rolling restart.

  forgetting.py [--short] SCENE…     of: idle load long limits; else all

  idle    nothing is held: a node is flushed
  load    CLIENTS (64) clients take and release locks of 5 s, while one node after
          the other is flushed, or killed and started empty. Beside it the same
          load without losses: the ratio of their p99s
  long    a node is flushed after a lock of 60 s was granted
  limits  --max-ttl-ms 60000, 120000, 60000 on three servers, one restarted after
          the other, under clients that try the next server once

--short loses two nodes instead of ten, and leaves out `long`. REDLOCKD and TOOLS
name the binary and the folder of the load generator.
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
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "lib"))
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
    """Status 0: no answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    try:
        connection.request(method, path, json.dumps(body) if body else None,
                           {"Content-Type": "application/json"} | (headers or {}))
        answer = connection.getresponse()
        text = answer.read()
        return answer.status, json.loads(text) if text else {}
    except (OSError, http.client.HTTPException, ValueError):
        return 0, {}
    finally:
        connection.close()


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

    def __init__(self, port: int, seconds: float) -> None:
        self.child = subprocess.Popen(
            [f"{TOOLS}/load", "-l", "5000", f"127.0.0.1:{port}", str(CLIENTS),
             str(seconds)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True)

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


def idle(stack: Stack, results: Results, _: bool) -> None:
    port = stack.start_server(0)
    for is_killed in (False, True):
        took_s = stack.lose(1, port, is_killed)
        what = "killed" if is_killed else "flushed"
        results.check(f"nothing is held, a node is {what}: votes again after "
                      f"{took_s:.1f} s", took_s <= 4)


def load(stack: Stack, results: Results, is_short: bool) -> None:
    port = stack.start_server(0)
    losses = [(node, is_killed) for is_killed in (False, True)
              for node in range(NODES)][::5 if is_short else 1]
    usual = Load(port, 5 if is_short else 15).end()
    running = Load(port, len(losses) * 7.5)
    time.sleep(1)
    took_s = [stack.lose(node, port, is_killed) for node, is_killed in losses]
    lossy = running.end()
    results.check(f"{len(losses)} losses under {CLIENTS} clients with locks of "
                  f"5 s: each votes again after {max(took_s):.1f} s at most",
                  max(took_s) <= 9)
    results.check(f"{lossy['cycles']:.0f} cycles meanwhile, failures: "
                  f"{lossy['failures']:.0f}", lossy["failures"] == 0)
    ratio = lossy["p99_us"] / usual["p99_us"]
    results.check(f"p99 {lossy['p99_us'] / 1000:.1f} ms, without losses "
                  f"{usual['p99_us'] / 1000:.1f} ms: {ratio:.2f}", ratio <= 2)


def long(stack: Stack, results: Results, is_short: bool) -> None:
    if is_short:
        return
    port = stack.start_server(0)
    body = {"resource": "long", "ttl_ms": 60000}
    results.check("a lock of 60 s is granted",
                  ask(port, "POST", "/locks", body)[0] == 201)
    took_s = stack.lose(2, port)
    results.check(f"a node that is flushed then votes again after "
                  f"{took_s:.1f} s", 55 < took_s <= 66)


class Worker(threading.Thread):
    """Takes a lock, extends it twice, releases it; a refused or lost request is
    tried once more, at the next server."""

    def __init__(self, number: int, ports: list[int],
                 has_ended: threading.Event) -> None:
        super().__init__()
        self.number, self.ports, self.has_ended = number, ports, has_ended
        self.requests = self.retries = 0
        self.failures: list[str] = []

    def ask(self, *request: object) -> dict:
        self.requests += 1
        first = (self.number + self.requests) % len(self.ports)
        for port in (self.ports[first],
                     self.ports[(first + 1) % len(self.ports)]):
            status, answer = ask(port, *request)  # type: ignore[arg-type]
            if status in (200, 201):
                return answer
            self.retries += 1
        self.failures.append(f"{request[0]} {status} {answer}")
        return {}

    def run(self) -> None:
        while not self.has_ended.is_set():
            name = f"limits:{self.number}:{self.requests}"
            lock = self.ask("POST", "/locks", {"resource": name, "ttl_ms": 8000})
            headers = {"X-Lock-Token": lock.get("token", "")}
            for _ in range(2):
                self.ask("PUT", f"/locks/{name}/extend", {"ttl_ms": 8000,
                         "token": lock.get("token", "")}, headers)
            self.ask("DELETE", f"/locks/{name}", None, headers)


def limits(stack: Stack, results: Results, is_short: bool) -> None:
    ports = [stack.start_server(server, "--max-ttl-ms", "60000")
             for server in range(SERVERS)]
    has_ended = threading.Event()
    workers = [Worker(number, ports, has_ended) for number in range(8)]
    for worker in workers:
        worker.start()
    for greatest in ("120000",) if is_short else ("120000", "60000"):
        for server in range(SERVERS):
            time.sleep(1)
            kill(stack.servers[server], signal.SIGTERM)
            stack.start_server(server, "--max-ttl-ms", greatest)
    time.sleep(1)
    has_ended.set()
    for worker in workers:
        worker.join()
    failures = [one for worker in workers for one in worker.failures]
    for failure in failures[:3]:
        print(f"  {failure}")
    results.check(
        f"--max-ttl-ms changed under load: {sum(w.requests for w in workers)} "
        f"requests, tried again {sum(w.retries for w in workers)}, failures: "
        f"{len(failures)}", not failures)


SCENES = {"idle": idle, "load": load, "long": long, "limits": limits}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--short", action="store_true")
    parser.add_argument("scenes", nargs="*", default=list(SCENES))
    options = parser.parse_args()
    results = Results()
    for name in options.scenes or SCENES:
        with tempfile.TemporaryDirectory() as folder:
            stack = Stack(Path(folder))
            try:
                SCENES[name](stack, results, options.short)
            finally:
                stack.end()
    print(f"{results.passed} passed, {results.failed} failed")
    sys.exit(results.failed > 0)


if __name__ == "__main__":
    main()
