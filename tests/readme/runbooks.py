#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Pastes the runbooks of docs/operations.md, "Change nodes or limits", into
bash: each row of the table, behind the functions above it, over a stack of its
own. The hosts of the docs are ports of loopback. What the commands reach by ssh
is a folder with the environment file of the package, and a redlockd that
`systemctl restart redlockd` restarts.

    runbooks.py [ROW…]     of: those whose first cell begins so; else all

REDLOCKD and TOOLS name the binary, and the folder with the nemesis' shim and
share/redlockd.env.
"""
from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Iterator

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/lib"))
from clocks import SHIM
from jobs import Job
from ports import free_ports
from processes import end, spawn
from stack import REDLOCKD, TOOLS, ask
from waiting import wait_until
from worker import Worker

SERVERS = ("lock-1", "lock-2")
CLIENTS = 4
TTL_MS = 2000        # of the locks that clients hold
MAX_TTL_MS = 5000
SIDE_BY_SIDE = 4

LIMIT_S = 400        # for what is pasted; a busy machine takes 150

STUBS = {
    "sudo": 'exec "$@"',
    "ssh": """
export SERVER="$STACK/$1"
shift
exec sh -c "$(printf %s "$*" | sed "s|/etc/redlockd|$SERVER|g")"
""",
    "systemctl": """
[ "$*" = "restart redlockd" ] || exit 1
touch "$SERVER/restart"
while [ -e "$SERVER/restart" ]; do sleep 0.05; done
""",
}


# ---- the page ----------------------------------------------------------------

def read_page() -> tuple[str, dict[str, str]]:
    """The functions, and the commands of each row."""
    page = (ROOT / "docs/operations.md").read_text()
    section = page.split("\n## Change nodes or limits\n")[1].split("\n## ")[0]
    functions = re.search(r"```sh\n(.*?)```", section, re.S)
    assert functions
    rows = re.findall(r"^\| (.*?) \| `(.*?)`.* \|$", section, re.M)
    return functions[1], dict(rows)


FUNCTIONS, ROWS = read_page()
NODES = re.search(r"^nodes=(\S+)$", FUNCTIONS, re.M)[1]  # type: ignore[index]


# ---- a stack -----------------------------------------------------------------

class Server(Job):
    """redlockd on a host, and who restarts it."""

    def __init__(self, stack: Stack, name: str, port: int) -> None:
        super().__init__()
        self.stack, self.port = stack, port
        self.folder = stack.folder / name
        self.folder.mkdir()
        self.file = self.folder / "redlockd.env"
        self.file.write_text(Path(f"{TOOLS}/share/redlockd.env").read_text())
        self.process: subprocess.Popen[bytes] | None = None

    def set(self, **variables: str) -> None:
        with self.file.open("a") as file:
            for name, value in variables.items():
                file.write(f"REDLOCKD_{name}={value}\n")

    def restart(self) -> None:
        if self.process:
            self.process.terminate()
            self.process.wait()
        lines = [line.split("=", 1) for line in
                 self.file.read_text().splitlines()
                 if line.startswith("REDLOCKD_")]
        environment = {**self.stack.environment, **dict(lines),
                       "NEMESIS_NAMES": str(self.stack.names),
                       "LD_PRELOAD": str(SHIM)}
        with (self.folder / "log").open("ab") as log:
            self.process = spawn(REDLOCKD, "--listen", f"127.0.0.1:{self.port}",
                                 env=environment, stderr=log)

    def work(self) -> None:
        wish = self.folder / "restart"
        while not self.stack.has_ended.wait(0.05):
            if wish.exists():
                self.restart()
                wish.unlink()
        end(self.process)

    def voting(self) -> int:
        return ask(self.port, "GET", "/readyz")[1].get("voting", 0)


class Stack:
    """Hosts with Redis, by the addresses of the docs, and two with redlockd."""

    def __init__(self, folder: Path, nodes: str = NODES) -> None:
        self.folder, self.nodes = folder, nodes
        self.names = folder / "names"
        self.redis: dict[str, subprocess.Popen[bytes]] = {}
        self.ports: dict[str, int] = {}
        self.has_ended = threading.Event()
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith("REDLOCKD")}
        ports = free_ports(len(SERVERS))
        self.servers = {name: Server(self, name, port)
                        for name, port in zip(SERVERS, ports)}
        (folder / ".curlrc").write_text("noproxy = *\n" + "".join(
            f"connect-to = {name}:8080:127.0.0.1:{server.port}\n"
            for name, server in self.servers.items()))
        for name, text in STUBS.items():
            (folder / name).write_text(f"#!/bin/sh\n{text}\n")
            (folder / name).chmod(0o755)
        self.workers: list[Worker] = []
        self.no_work = threading.Event()

    # ---- Redis

    def start_redis(self, *hosts: str) -> None:
        for host, port in zip(hosts, free_ports(len(hosts))):
            at = self.folder / host
            at.mkdir()
            self.redis[host] = spawn(
                "redis-server", "--bind", "127.0.0.1", "--port", port, "--dir", at,
                "--save", "", "--appendonly", "yes", "--appendfsync", "always",
                stdout=subprocess.DEVNULL)
            self.point(host, port)
        for host in hosts:
            wait_until(lambda: self.redis_says(host, "PING") == "PONG", host)

    def point(self, name: str, port: int) -> None:
        """What DNS says; no server sees half of it."""
        self.ports[name] = port
        new = self.folder / "names.new"
        new.write_text("".join(f"{name} {port}\n"
                               for name, port in self.ports.items()))
        new.rename(self.names)

    def redis_says(self, host: str, *command: str) -> str:
        return subprocess.run(
            ["redis-cli", "-p", str(self.ports[host]), *command],
            capture_output=True, text=True, check=False).stdout.strip()

    def kill_redis(self, *hosts: str) -> None:
        for host in hosts:
            end(self.redis[host])

    # ---- redlockd

    def start(self) -> None:
        self.start_redis(*re.findall(r"=([^:,]+):", self.nodes))
        for server in self.servers.values():
            # drains, so that a retry at this server finds it before it leaves
            server.set(NODES=self.nodes, NODE_TIMEOUT_MS="400", DRAIN_MS="500",
                       MAX_TTL_MS=str(MAX_TTL_MS))
            server.restart()
            server.start()
        self.wait_votes()

    def wait_votes(self) -> None:
        count = len(self.nodes.split(","))
        for name, server in self.servers.items():
            wait_until(lambda: server.voting() == count, f"all vote for {name}")

    def start_work(self) -> None:
        ports = [server.port for server in self.servers.values()]
        self.workers = [Worker(number, ports, self.no_work, TTL_MS, 0.05)
                        for number in range(CLIENTS)]
        for worker in self.workers:
            worker.start()

    def stop_work(self) -> None:
        """No client has noticed anything."""
        self.no_work.set()
        for worker in self.workers:
            worker.join()
        failures = [one for worker in self.workers for one in worker.failures]
        expect(not failures, f"{len(failures)} failed: {failures[:1]}")
        expect(all(worker.requests for worker in self.workers), "clients work")

    def expect_votes_of(self, *hosts: str) -> None:
        """They do not stand in as anybody else's."""
        for host in hosts:
            expect(self.redis_says(host, "HEXISTS", "redlockd:state", "admit")
                   == "1", f"{host} is admitted")

    def acquire(self, ttl_ms: int) -> list[int]:
        """The status at each server; the lock is released."""
        statuses = []
        for server in self.servers.values():
            status, lock = ask(server.port, "POST", "/locks",
                               {"resource": "asked", "ttl_ms": ttl_ms})
            statuses.append(status)
            if status == 201:
                ask(server.port, "DELETE", "/locks/asked", None,
                    {"X-Lock-Token": lock["token"]})
        return statuses

    def paste(self, row: str, *edits: tuple[str, str]) -> None:
        """With the nodes of this stack."""
        code = ROWS[row]
        for old, new in edits:
            assert old in code, code
            code = code.replace(old, new)
        text = FUNCTIONS.replace(f"nodes={NODES}", f"nodes={self.nodes}") + code
        done = subprocess.run(
            ["bash", "-c", text + '\necho "nodes are $nodes"'],
            env={**self.environment, "STACK": str(self.folder),
                 "CURL_HOME": str(self.folder),
                 "PATH": f"{self.folder}:{os.environ['PATH']}"},
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            timeout=LIMIT_S, check=False)
        found = re.search(r"^nodes are (.*)\n\Z", done.stdout, re.M)
        expect(found is not None, f"{code}: {done.stdout}")
        self.nodes = found[1]  # type: ignore[index]
        self.wait_votes()

    def end(self) -> None:
        self.no_work.set()
        self.has_ended.set()
        for server in self.servers.values():
            if server.ident:  # it was started
                server.join()
        for process in self.redis.values():
            end(process)


def expect(is_so: bool, what: str) -> None:
    if not is_so:
        raise AssertionError(what)


# ---- the runbooks ------------------------------------------------------------

@contextmanager
def started(nodes: str = NODES, has_clients: bool = True) -> Iterator[Stack]:
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="redlockd-runbook.",
                                     dir=memory) as folder:
        stack = Stack(Path(folder), nodes)
        try:
            stack.start()
            if has_clients:
                stack.start_work()
            yield stack
            stack.stop_work()
        finally:
            stack.end()


def replace(row: str, is_dead: bool) -> None:
    with started() as stack:
        if is_dead:
            stack.kill_redis("10.0.0.5")
        stack.start_redis("10.0.0.9")
        stack.paste(row)
        stack.expect_votes_of("10.0.0.9")
        time.sleep(1)
        stack.kill_redis("10.0.0.1", "10.0.0.2")
        time.sleep(1)


def follow_dns(row: str) -> None:
    with started(NODES.replace("10.0.0.5", "redis-5")) as stack:
        stack.start_redis("new")
        stack.point("redis-5", stack.ports["new"])
        stack.paste(row)
        stack.expect_votes_of("new")


def move_all(row: str) -> None:
    with started() as stack:
        old = list(stack.redis)
        stack.start_redis(*(f"10.1.0.{i}" for i in range(1, 6)))
        stack.paste(row)
        expect("10.0" not in stack.nodes, stack.nodes)
        stack.kill_redis(*old)
        time.sleep(1)


def change_ttl(row: str) -> None:
    with started() as stack:
        expect(stack.acquire(100000) == [400, 400], "the TTL is refused")
        stack.paste(row)
        expect(stack.acquire(100000) == [201, 201], "the TTL is accepted")
        stack.paste(row, ("120000", "60000"))
        expect(stack.acquire(100000) == [400, 400], "the TTL is refused again")


def grow(row: str) -> None:
    with started(NODES.split(",d=")[0], has_clients=False) as stack:
        stack.start_redis("10.0.0.4", "10.0.0.5")
        stack.paste(row)
        stack.kill_redis("10.0.0.1", "10.0.0.2")
        expect(stack.acquire(1000) == [201, 201], "three of five are a quorum")


def shrink(row: str) -> None:
    """These nodes begin with epoch 1, not 2."""
    with started(has_clients=False) as stack:
        stack.paste(row, ("_EPOCH=3", "_EPOCH=2"))
        stack.kill_redis("10.0.0.4", "10.0.0.5", "10.0.0.3")
        expect(stack.acquire(1000) == [201, 201], "two of three are a quorum")


def correct(row: str, mistake: str) -> None:
    with started() as stack:
        stack.start_redis("10.0.0.7", "10.0.0.8", "10.0.0.9")
        server = stack.servers["lock-2"]
        if mistake == "epoch":
            server.set(CONFIG_EPOCH="20")
        elif mistake == "address":
            server.set(NODES=NODES.replace("10.0.0.5", "10.0.0.9"))
        elif mistake == "addresses":
            server.set(NODES=re.sub(r"10\.0\.0\.([345])", lambda found:
                                    f"10.0.0.{int(found[1]) + 4}", NODES))
        else:
            server.set(NODES=NODES.replace("a=", "x=").replace("b=", "a=")
                       .replace("x=", "b="))
        (server.folder / "restart").touch()
        time.sleep(2)
        expect(stack.servers["lock-1"].voting() == 5, "the other one has all")
        stack.paste(row)


def take_back(row: str) -> None:
    with started() as stack:
        stack.start_redis("10.0.0.9")
        stack.paste("replace or move a machine")
        stack.nodes = NODES
        stack.paste(row)
        stack.expect_votes_of("10.0.0.5")


def leave_wrong_names(row: str) -> None:
    with started(has_clients=False) as stack:
        stack.start_redis("10.0.0.9")
        server = stack.servers["lock-2"]
        server.set(NODES=NODES.replace("e=10.0.0.5", "f=10.0.0.9"),
                   CONFIG_EPOCH="2")
        (server.folder / "restart").touch()
        wait_until(lambda: stack.servers["lock-1"].voting() == 0, "it loses all")
        stack.paste(row)
        expect(stack.acquire(1000) == [201, 201], "both grant again")


Play = Callable[[str], None]
PLAYS: list[tuple[str, Play]] = [
    ("move all five", move_all),
    ("take back a wrong address", take_back),
    ("replace or move a machine", lambda row: replace(row, True)),
    ("replace or move a machine", lambda row: replace(row, False)),
    ("do so by DNS", follow_dns),
    ("raise or lower the TTL", change_ttl),
    ("go from 3 nodes to 5 (a pause)", grow),
    ("go from 5 nodes to 3 (a pause)", shrink),
    ("leave wrong names (a pause)", leave_wrong_names),
    ("correct one server's nodes or epoch", lambda row: correct(row, "epoch")),
    ("correct one server's nodes or epoch", lambda row: correct(row, "address")),
    ("correct one server's nodes or epoch", lambda row: correct(row, "addresses")),
    ("correct one server's nodes or epoch", lambda row: correct(row, "swapped")),
]


def play(what: tuple[str, Play]) -> bool:
    row, scene = what
    began = time.monotonic()
    try:
        scene(row)
        failure = ""
    except Exception as error:  # whatever it is
        failure = f"{type(error).__name__}: {error}"
    print(f"  {'FAILS' if failure else 'ok   '} {row} "
          f"({time.monotonic() - began:.0f} s) {failure}", flush=True)
    return not failure


def main() -> None:
    named = {row for row, _ in PLAYS}
    if set(ROWS) != named:
        sys.exit(f"not played, or not in the table: {set(ROWS) ^ named}")
    wanted = [one for one in PLAYS
              if one[0].startswith(tuple(sys.argv[1:] or [""]))]
    with ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
        results = list(pool.map(play, wanted))
    print(f"runbooks: {results.count(True)} passed, {results.count(False)} failed")
    sys.exit(not all(results) or not results)


if __name__ == "__main__":
    main()
