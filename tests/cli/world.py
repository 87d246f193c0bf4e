"""Five Redis masters, two redlockd, and a proxy in front of each of those."""
from __future__ import annotations

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / name)
                for name in ("nemesis", "lib")]
from cluster import is_ready  # noqa: E402
from ports import free_ports  # noqa: E402
from processes import end, spawn  # noqa: E402
from services import Handler, Service  # noqa: E402
from stack import ask  # noqa: E402
from waiting import wait_until  # noqa: E402

NODES = 5
WAIT_S = 30
MAX_TTL_MS = 4000
# a redlockctl that starts again would outlive a test that has failed
DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL", "--")


def now_ns() -> int:
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME)


class PassOn(Handler):
    server: Proxy

    def pass_on(self) -> None:
        came_ns = now_ns()
        link = http.client.HTTPConnection("127.0.0.1", self.server.target,
                                          timeout=60)
        try:
            link.request(self.command, self.path, self.body(), dict(self.headers))
            answer = link.getresponse()
            text = answer.read()
        except OSError:
            self.close_connection = True
            return
        finally:
            link.close()
        if self.server.is_cut:
            self.close_connection = True
            return
        self.note(came_ns, answer.status, text)
        self.answer(answer.status, text,
                    {"Content-Type": answer.headers["Content-Type"]})

    do_GET = do_POST = do_PUT = do_DELETE = pass_on

    def note(self, came_ns: int, status: int, text: bytes) -> None:
        if status not in (200, 201):
            return
        answer = json.loads(text)
        self.server.repeats += self.command == "POST" and status == 200
        if "validity_ms" in answer:
            ms = answer["elapsed_ms"] + answer["validity_ms"]
            until_ns = self.server.until_ns
            until_ns[answer["id"]] = max(until_ns.get(answer["id"], 0),
                                         came_ns + ms * 1_000_000)


class Proxy(Service):
    """Passes requests on, and notes until when each lock is valid, by the
    answers that grant or extend it. It counts from when the request came
    here, which is after it was sent."""

    def __init__(self, port: int, target: int, until_ns: dict[str, int],
                 handler: type[PassOn] = PassOn) -> None:
        self.target, self.until_ns = target, until_ns
        self.is_cut = False  # no answer comes through
        self.repeats = 0  # acquires that got again what they had
        super().__init__(handler, port)


class World:
    """Use it with `with`. Everything it starts ends with this process."""

    def __init__(self, *options: str) -> None:
        self.options = options  # of the servers
        self.folder = Path(tempfile.mkdtemp(prefix="redlockctl."))
        self.redlockd = os.environ.get("REDLOCKD", "build/release/redlockd")
        self.redlockctl = os.environ.get("REDLOCKCTL",
                                         "build/release/redlockctl")
        self.beat = os.environ.get("BEAT", "build/release/beat")
        self.until_ns: dict[str, int] = {}
        ports = free_ports(NODES + 4)
        self.nodes = [self.start_node(port) for port in ports[:NODES]]
        self.node_ports = ports[:NODES]
        self.server_ports = ports[NODES:NODES + 2]
        self.servers = [self.start_server(i) for i in range(2)]
        self.proxies = [
            Proxy(port, target, self.until_ns)
            for port, target in zip(ports[NODES + 2:], self.server_ports)]
        self.urls = [f"http://127.0.0.1:{port}" for port in ports[NODES + 2:]]
        self.wait_ready()

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_) -> None:
        for child in [*self.servers, *self.nodes]:
            end(child)
        shutil.rmtree(self.folder)
        for proxy in self.proxies:
            proxy.close()

    @property
    def repeats(self) -> int:
        return sum(proxy.repeats for proxy in self.proxies)

    def start_node(self, port: int) -> subprocess.Popen:
        folder = self.folder / str(port)
        folder.mkdir()
        with (self.folder / f"node{port}.log").open("ab") as log:
            return spawn("redis-server", "--bind", "127.0.0.1", "--port",
                         str(port), "--dir", str(folder), "--save", "",
                         "--appendonly", "yes", "--appendfsync", "always",
                         stdout=log, stderr=log)

    def start_server(self, i: int) -> subprocess.Popen:
        with (self.folder / f"server{i}.log").open("ab") as log:
            return spawn(self.redlockd, "--listen",
                         f"127.0.0.1:{self.server_ports[i]}", "--nodes",
                         ",".join(f"127.0.0.1:{p}" for p in self.node_ports),
                         "--max-ttl-ms", str(MAX_TTL_MS), "--drain-ms", "0",
                         "--first-start", "yes", *self.options, stdout=log, stderr=log)

    def kill_server(self, i: int) -> None:
        end(self.servers[i])

    def restart_server(self, i: int) -> None:
        self.servers[i] = self.start_server(i)
        self.wait_ready()

    def wait_ready(self) -> None:
        wait_until(lambda: all(is_ready(("127.0.0.1", port))
                               for port in self.server_ports), "a quorum",
                   WAIT_S)

    @staticmethod
    @contextlib.contextmanager
    def cut(*proxies: Proxy) -> Iterator[None]:
        """No answer comes through these."""
        for proxy in proxies:
            proxy.is_cut = True
        try:
            yield
        finally:
            for proxy in proxies:
                proxy.is_cut = False

    def ask(self, method: str, path: str, **headers: str) -> tuple[int, dict]:
        """Asks a server directly, without a proxy."""
        return ask(self.server_ports[0], method, path, headers={
            name.replace("_", "-"): text for name, text in headers.items()})

    def is_free(self, resource: str) -> bool:
        """As a server tells it directly."""
        return self.ask("GET", f"/locks/{resource}")[1].get("held") is False

    def run(self, resource: str, *beat: str, ttl: str = "1", wait: str = "20",
            options: tuple[str, ...] = ()) -> subprocess.Popen:
        """redlockctl run, in a process group of its own, like a job of a shell."""
        urls = [word for url in self.urls for word in ("--url", url)]
        with (self.folder / "ctl.log").open("ab") as log:
            return subprocess.Popen(
                [self.redlockctl, "run", *urls, "-t", ttl, "-w", wait,
                 *options, resource, "--", self.beat, *beat],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                process_group=0)


def children(pid: int) -> list[int]:
    try:
        return [int(word) for word in Path(
            f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def is_alive(pid: int) -> bool:
    """A zombie does not count."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(
            ")", 1)[1].split()[0] not in "ZX"
    except OSError:
        return False


def cleanly(number: int, _frame) -> None:
    sys.exit(128 + number)


signal.signal(signal.SIGTERM, cleanly)
