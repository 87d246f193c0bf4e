# SPDX-License-Identifier: MIT
"""Five durable Redis masters, two redlockd, and a proxy in front of each of those."""
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
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "lib"))
from processes import end  # noqa: E402
from services import Handler, Service  # noqa: E402
from stack import Stack, ask  # noqa: E402
from waiting import wait_until  # noqa: E402

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
        if self.command == "DELETE":
            self.server.released_ns[answer["id"]] = came_ns
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

    def __init__(self, target: int, until_ns: dict[str, int],
                 handler: type[PassOn] = PassOn) -> None:
        self.target, self.until_ns = target, until_ns
        self.is_cut = False  # no answer comes through
        self.repeats = 0  # acquires that got again what they had
        self.released_ns: dict[str, int] = {}
        super().__init__(handler)


class World(Stack):
    """Use it with `with`. Everything it starts ends with this process."""

    max_ttl_ms, drain_ms = MAX_TTL_MS, 0

    def __init__(self, *options: str) -> None:
        self.options = options  # of the servers
        self.redlockctl = os.environ.get("REDLOCKCTL",
                                         "build/release/redlockctl")
        self.beat = os.environ.get("BEAT", "build/release/beat")
        super().__init__(Path(tempfile.mkdtemp(prefix="redlockctl.")),
                         "--appendonly", "yes", "--appendfsync", "always")
        for server in range(2):
            self.start_server(server)
        self.until_ns: dict[str, int] = {}
        self.proxies = [Proxy(port, self.until_ns)
                        for port in self.server_ports.values()]
        self.urls = [proxy.url for proxy in self.proxies]

    def __enter__(self) -> World:
        return self

    def __exit__(self, *_) -> None:
        self.end()
        shutil.rmtree(self.folder)
        for proxy in self.proxies:
            proxy.close()

    @property
    def repeats(self) -> int:
        return sum(proxy.repeats for proxy in self.proxies)

    def options_of(self, server: int) -> tuple[str, ...]:
        return self.options

    def start_server(self, server: int) -> None:
        """And waits until it is ready."""
        super().start_server(server, "--max-ttl-ms", str(self.max_ttl_ms),
                             "--drain-ms", str(self.drain_ms),
                             *self.options_of(server))

    def kill_server(self, server: int) -> None:
        end(self.servers[server])

    def wait_ready(self) -> None:
        wait_until(lambda: all(ask(port, "GET", "/readyz")[0] == 200
                               for port in self.server_ports.values()),
                   "a quorum", WAIT_S)

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

    def run(self, resource: str, *beat: str, ttl: str,
            options: tuple[str, ...]) -> subprocess.Popen:
        """redlockctl run, in a process group of its own, like a job of a shell."""
        urls = [word for url in self.urls for word in ("--url", url)]
        with (self.folder / "ctl.log").open("ab") as log:
            return subprocess.Popen(
                [self.redlockctl, "run", *urls, "-t", ttl, "-w", "20",
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


# ---- tests ----------------------------------------------------------------------

def tests_of(names: dict[str, Any], takes: str) -> list[Callable[[Any], None]]:
    """Of a module: its functions of one argument of this kind, in their order."""
    return [it for it in names.values() if list(
        getattr(it, "__annotations__", {}).values()) == [takes, "None"]]


def passes(test: Callable[[Any], None], subject: Any) -> bool:
    try:
        test(subject)
    except (AssertionError, OSError, ValueError,
            subprocess.SubprocessError) as problem:
        print(f"FAIL  {test.__name__}: {problem!r}", flush=True)
        return False
    print(f"ok    {test.__name__.replace('_', ' ')}", flush=True)
    return True


def play(tests: list[Callable[[Any], None]],
         prepare: Callable[[World], Any] = lambda world: world,
         options: tuple[str, ...] = (),
         kind: type[World] = World) -> int:
    """Runs the tests that the command line names, or all; each gets what is made
    of the world. options: of its servers."""
    wanted = sys.argv[1:] or [test.__name__ for test in tests]
    with kind(*options) as world:
        subject = prepare(world)
        results = [passes(test, subject) for test in tests
                   if test.__name__ in wanted]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) and results else 1


def cleanly(number: int, _frame) -> None:
    sys.exit(128 + number)


signal.signal(signal.SIGTERM, cleanly)
