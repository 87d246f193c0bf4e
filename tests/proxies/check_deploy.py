#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""deploy/haproxy.cfg and deploy/nginx.conf in front of real servers, of which
one is down.

check_deploy.py [TEST...]; LONG=1: waits as long as a request may
check_deploy.py --check: only whether HAProxy and nginx take them
"""
from __future__ import annotations

import http.client
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cli"), str(ROOT / "tests/lib")]
from balancers import HAPROXY, NGINX, Balancer  # noqa: E402
from ports import free_ports  # noqa: E402

KINDS = ("haproxy", "nginx")
WAIT_S = 30
SOON_S = 2.0
LONGEST_MS = 45000
TTL_MS = 4000


# ---- their configurations -----------------------------------------------------

def text_of(kind: str, listen: str, servers: list[str]) -> str:
    """As in deploy/, with other addresses; nothing else is changed."""
    text = (ROOT / "deploy" / ("haproxy.cfg" if kind == "haproxy"
                               else "nginx.conf")).read_text()
    for number, server in zip((11, 12, 13), servers):
        assert text.count(f"192.0.2.{number}:8080") == 1
        text = text.replace(f"192.0.2.{number}:8080", server)
    line = "    bind :8080\n" if kind == "haproxy" else "        listen 8080;\n"
    assert text.count(line) == 1
    return text.replace(line, line.replace(
        ":8080" if kind == "haproxy" else "8080", listen))


def command_of(kind: str, folder: Path, file: Path) -> list[object]:
    if kind == "haproxy":
        return [HAPROXY, "-db", "-f", file]
    # whoever runs the tests may not write where Debian's nginx does
    paths = " ".join(f"{name}_temp_path {folder}/{name};" for name in (
        "client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    file.write_text(file.read_text().replace(
        "    access_log off;\n", f"    access_log off;\n    {paths}\n"))
    return [NGINX, "-e", "stderr", "-p", folder, "-c", file, "-g",
            f"daemon off; pid {folder}/nginx.pid;"]


def start(kind: str, folder: Path, servers: list[int], before: str = "",
          after: str = "") -> Balancer:
    """With one text in place of another, if they are given."""
    port, = free_ports(1)
    file = folder / f"{kind}{port}.conf"
    text = text_of(kind, f"127.0.0.1:{port}",
                   [f"127.0.0.1:{it}" for it in servers])
    assert before in text
    file.write_text(text.replace(before, after) if before else text)
    return Balancer(folder, port, *command_of(kind, folder, file))


def check() -> int:
    """By the programs themselves, without a port."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for kind in KINDS:
            file = folder / kind
            file.write_text(text_of(
                kind, ("unix@" if kind == "haproxy" else "unix:") +
                f"{folder}/socket", ["192.0.2.11:8080"] * 3))
            words = command_of(kind, folder, file)
            done = subprocess.run(
                [*words, "-c" if kind == "haproxy" else "-t"],
                capture_output=True, text=True, check=False)
            said = done.stdout + done.stderr
            if done.returncode or re.search("warn", said, re.IGNORECASE):
                print(f"deploy: {kind} does not take it as it is:\n{said}")
                return 1
    return 0


if sys.argv[1:] == ["--check"]:
    sys.exit(check())

from cancel import variable, take, waiters  # noqa: E402
from world import World, play, tests_of  # noqa: E402

from jobs import Job  # noqa: E402
from waiting import wait_until  # noqa: E402


class Servers(World):
    """Behind a proxy that they trust."""

    max_ttl_ms, drain_ms = TTL_MS, 4000

    def options_of(self, server: int) -> tuple[str, ...]:
        return ("--trusted-proxies", "127.0.0.1", "--audit-log",
                str(self.folder / f"audit{server}.log"))


class Place:
    def __init__(self, world: Servers, kind: str, before: str = "",
                 after: str = "") -> None:
        self.world, self.kind = world, kind
        self.change = before, after
        down, = free_ports(1)
        self.balancer = start(kind, world.folder, [*world.server_ports.values(), down],
                              before, after)
        self.port = int(self.balancer.url.rpartition(":")[2])

    def link(self, host: int = 1) -> http.client.HTTPConnection:
        """From 127.0.0.host: its server is always the same one."""
        return http.client.HTTPConnection(
            "127.0.0.1", self.port, timeout=70,
            source_address=(f"127.0.0.{host}", 0))

    def waiting(self) -> float:
        return waiters(self.world)

    def host_of(self, server: int) -> int:
        """One whose requests this server gets."""
        audit = self.world.folder / f"audit{server}.log"
        for host in range(1, 60):
            link = self.link(host)
            name = f"host{host}-{time.monotonic_ns()}"
            lock = acquire(link, name)
            release(link, lock)
            if name in audit.read_text():
                return host
        raise AssertionError(f"no host is served by {server}")


def ask(link: http.client.HTTPConnection, method: str, path: str,
        body: dict | None = None, **headers: str) -> tuple[int, dict]:
    send(link, method, path, body, **headers)
    return read(link)


def send(link: http.client.HTTPConnection, method: str, path: str,
         body: dict | None = None, **headers: str) -> None:
    link.request(method, path, json.dumps(body) if body else None,
                 {"Content-Type": "application/json",
                  **{name.replace("_", "-"): it for name, it in headers.items()}})


def read(link: http.client.HTTPConnection) -> tuple[int, dict]:
    answer = link.getresponse()
    text = answer.read()
    try:
        return answer.status, json.loads(text)
    except ValueError:
        return answer.status, {"text": text}


def key() -> str:
    return f"{random.getrandbits(128):032x}"


def acquire(link: http.client.HTTPConnection, name: str, **more) -> dict:
    status, lock = ask(link, "POST", "/locks",
                       {"resource": name, "ttl_ms": TTL_MS, **more},
                       Idempotency_Key=key())
    assert status == 201, (status, lock)
    return lock


def release(link: http.client.HTTPConnection, lock: dict) -> None:
    for _ in range(4):
        status, told = ask(link, "DELETE", f"/locks/{lock['id']}",
                           X_Lock_Token=lock["token"])
        if status != 502:  # nginx, of the server that is down
            break
    assert status == 200, (status, told)


# ---- clients that leave ---------------------------------------------------------

def who_leaves_while_it_waits_does_not_get_it(place: Place) -> None:
    for more in {}, {"mode": "shared"}, {"limit": 1}:
        name = f"{place.kind}-leaves-{len(more)}{'limit' in more}"
        pool = {"limit": 1} if "limit" in more else {}
        holder, leaver, next_one = place.link(), place.link(), place.link()
        held = acquire(holder, name, **pool)
        send(leaver, "POST", "/locks", {
            "resource": name, "ttl_ms": TTL_MS, "wait_ms": 20000, **more})
        wait_until(lambda: place.waiting() == 1, "it waits", WAIT_S)
        leaver.close()
        wait_until(lambda: place.waiting() == 0, "nobody waits", SOON_S)
        release(holder, held)
        release(next_one, acquire(next_one, name, **pool))


def who_leaves_a_watch_is_gone(place: Place) -> None:
    watcher = place.link()
    send(watcher, "GET", f"/locks/{place.kind}-w?after=free&wait_ms=20000")
    wait_until(lambda: place.waiting() == 1, "it watches", WAIT_S)
    watcher.close()
    wait_until(lambda: place.waiting() == 0, "nobody watches", SOON_S)


def who_leaves_at_the_grant_takes_it_back(place: Place) -> None:
    """Whenever that was, with the key of the request."""
    for i in range(40):
        name, one = f"{place.kind}-grant{i}", key()
        leaver, again = place.link(), place.link()
        send(leaver, "POST", "/locks", {"resource": name, "ttl_ms": TTL_MS},
             Idempotency_Key=one)
        time.sleep(i % 10 * 0.0005)
        leaver.close()
        status, lock = ask(again, "POST", "/locks",
                           {"resource": name, "ttl_ms": 100},
                           Idempotency_Key=one)
        assert status in (200, 201), (status, lock)
        status, _ = ask(again, "DELETE", f"/locks/{lock['id']}",
                        X_Lock_Token=lock["token"])
        if status != 200:  # the first one came later
            status, lock = ask(again, "POST", "/locks", {
                "resource": name, "ttl_ms": 100}, Idempotency_Key=one)
            assert status in (200, 201), (status, lock)
            release(again, lock)
        taken = take(place.world, name)
        assert taken.returncode == 0, (i, taken.stderr)


# ---- long requests ---------------------------------------------------------------

def a_wait_is_not_cut(place: Place) -> None:
    wait_ms = LONGEST_MS if os.environ.get("LONG") else 2500
    name = f"{place.kind}-long"
    holder, other = place.link(), place.link()
    held = acquire(holder, name)
    send(other, "POST", "/locks",
         {"resource": name, "wait_ms": wait_ms, "ttl_ms": TTL_MS})
    until = time.monotonic() + wait_ms / 1000 + 1
    while time.monotonic() < until:
        time.sleep(0.9)
        status, told = ask(holder, "PUT", f"/locks/{held['id']}/extend", {
            "ttl_ms": TTL_MS}, X_Lock_Token=held["token"])
        assert status == 200, told
    status, told = read(other)
    assert (status, told.get("code")) == (409, "lock_held"), (status, told)
    release(holder, held)


def its_timeouts_are_longer_than_any_wait(place: Place) -> None:
    text = text_of(place.kind, "x", [])
    found = re.findall(
        r"^ *timeout (?:client|server) +(\d+)s$" if place.kind == "haproxy" else
        r"^ *(?:proxy_read_timeout|keepalive_timeout) (\d+)s;", text, re.MULTILINE)
    assert len(found) >= 2, found
    for seconds in found:
        assert LONGEST_MS / 1000 + 5 <= int(seconds) < 75, found
    spec = (ROOT / "openapi.yaml").read_text()
    assert f"maximum: {LONGEST_MS}\n" in spec


def a_watch_is_told_at_once(place: Place) -> None:
    name = f"{place.kind}-watched"
    watcher, holder = place.link(), place.link(2)
    send(watcher, "GET", f"/locks/{name}?after=free&wait_ms=20000")
    wait_until(lambda: place.waiting() == 1, "it watches", WAIT_S)
    held, began = acquire(holder, name), time.monotonic()
    status, told = read(watcher)
    assert (status, told["held"]) == (200, True), told
    assert time.monotonic() - began < SOON_S
    release(holder, held)


# ---- what arrives ------------------------------------------------------------------

def names_arrive_as_they_were_sent(place: Place) -> None:
    link = place.link()
    for name in "a/b", "a//b", "../x", "order:42", "50%", "Zürich", "a b+c":
        lock = acquire(link, f"{place.kind}{name}")
        path = f"/locks/{quote(place.kind + name, safe='')}"
        status, told = ask(link, "GET", path)
        assert (status, told.get("held")) == (200, True), (name, told)
        release(link, lock)


def the_client_is_named(place: Place) -> None:
    for host in 5, 77:
        name = f"{place.kind}-named{host}"
        link = place.link(host)
        release(link, acquire(link, name))
        lines = [line for i in range(2) for line in
                 (place.world.folder / f"audit{i}.log").read_text().splitlines()
                 if name in line]
        assert len(lines) == 2, lines
        assert all(f"127.0.0.{host}" in line for line in lines), lines


class Deaf(threading.Thread):
    """Two servers that read requests and close, without an answer."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.requests: list[str] = []
        self.sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
        self.ports = [it.getsockname()[1] for it in self.sockets]
        for it in self.sockets:
            threading.Thread(target=self.serve, args=(it,), daemon=True).start()

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                it, _ = listener.accept()
            except OSError:
                return
            with it:
                text = it.recv(65536)
                while b"{" not in text and text.startswith(b"POST"):
                    text += it.recv(65536) or b"{"
                if text.startswith(b"GET /readyz"):
                    it.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
                               b"Connection: close\r\n\r\n")
                elif text:
                    self.requests.append(text.decode().split()[0])

    def close(self) -> None:
        for it in self.sockets:
            it.close()


def only_what_may_be_is_sent_again(place: Place) -> None:
    """A request whose connection broke may have been carried out."""
    deaf = Deaf()
    with start(place.kind, place.world.folder, [*deaf.ports, deaf.ports[0]],
               *place.change) as it:
        port = int(it.url.rpartition(":")[2])
        for method, headers, is_again in (
                ("GET", {}, True), ("POST", {}, False),
                ("POST", {"Idempotency_Key": key()}, True), ("DELETE", {}, False)):
            link = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
            deaf.requests.clear()
            path = "/locks" if method == "POST" else "/locks/a"
            status, _ = ask(link, method, path,
                            {"resource": "a"} if method == "POST" else None,
                            **headers)
            assert status in (502, 503, 504), status
            count = len(deaf.requests)
            assert (count > 1) == is_again and count > 0, (
                method, headers, deaf.requests)
            time.sleep(1.1)  # nginx lets a server rest for a second
    deaf.close()


# ---- servers that go ------------------------------------------------------------

class Work(Job):
    """One lock after the other; a request that fails is sent again, as the
    packages do, with its key."""

    def __init__(self, place: Place, host: int, name: str) -> None:
        super().__init__(name=name)
        self.place, self.host = place, host
        self.failed: list[tuple[str, int]] = []
        self.locks = 0
        self.gap_s = 0.0
        self.is_over = False

    def work(self) -> None:
        link, last = self.place.link(self.host), time.monotonic()
        while not self.is_over:
            lock = self.until_good(link, "POST", "/locks", {
                "resource": f"{self.name}{self.locks}", "ttl_ms": TTL_MS},
                Idempotency_Key=key())
            self.until_good(link, "DELETE", f"/locks/{lock['id']}",
                            X_Lock_Token=lock["token"])
            self.locks += 1
            self.gap_s = max(self.gap_s, time.monotonic() - last)
            last = time.monotonic()

    def until_good(self, link: http.client.HTTPConnection, method: str,
                   path: str, body: dict | None = None, **headers: str) -> dict:
        may_be_done = False
        for _ in range(200):
            try:
                status, told = ask(link, method, path, body, **headers)
            except (OSError, http.client.HTTPException):
                link.close()
                status, told = 0, {}
            if status in (200, 201):
                return told
            if may_be_done and method == "DELETE" and status in (404, 409):
                return told
            self.failed.append((method, status))
            may_be_done = True
            time.sleep(0.02)
        raise AssertionError(f"{method} {path}: {status} {told}")


def work_goes_on(place: Place, number: int) -> Work:
    """While the server of this work is told to end, and comes back."""
    host = place.host_of(0)
    work = Work(place, host, f"{place.kind}-work{number}-")
    work.start()
    time.sleep(0.5)
    server = place.world.servers[0]
    server.send_signal(number)
    server.wait(WAIT_S)
    time.sleep(1)
    before = work.locks
    wait_until(lambda: work.locks > before + 20 or work.error, "work", WAIT_S)
    place.world.start_server(0)
    time.sleep(2.5)  # it is noticed
    work.is_over = True
    work.join(WAIT_S)
    return work


def a_server_that_drains_costs_nothing(place: Place) -> None:
    work = work_goes_on(place, signal.SIGTERM)
    if place.kind == "nginx":  # it sends no release twice, and does not probe
        assert set(work.failed) <= {("DELETE", 502)}, work.failed
        assert len(work.failed) <= 20, work.failed
    else:
        assert not work.failed, work.failed
    assert work.gap_s < SOON_S, work.gap_s


def a_server_that_dies_costs_a_moment(place: Place) -> None:
    work = work_goes_on(place, signal.SIGKILL)
    assert len(work.failed) <= 60, work.failed
    assert work.gap_s < 3, work.gap_s


def connections_may_be_closed_by_either_side(place: Place) -> None:
    """Of clients, and of servers that were restarted meanwhile."""
    link = place.link()
    for i in range(3):
        lock = acquire(link, f"{place.kind}-kept{i}")
        if i == 1:
            link.close()
        release(link, lock)
        status, _ = ask(link, "GET", "/livez", Connection="close")
        assert status == 200
        if i == 0:
            for server in range(2):
                place.world.kill_server(server)
            for server in range(2):
                place.world.start_server(server)
            time.sleep(2.5)  # HAProxy looks each second, and twice


# Without these, these tests fail.
NEEDED: dict[str, list[tuple[str, str, Callable[[Place], None]]]] = {
    "haproxy": [
        ("    option abortonclose\n", "",
         who_leaves_while_it_waits_does_not_get_it),
        ("    http-request disable-l7-retry", "    # ",
         only_what_may_be_is_sent_again),
        ("    option forwardfor\n", "", the_client_is_named)],
    "nginx": [
        ("proxy_ignore_client_abort off", "proxy_ignore_client_abort on",
         who_leaves_while_it_waits_does_not_get_it),
        ("proxy_next_upstream off", "proxy_next_upstream error",
         only_what_may_be_is_sent_again),
        ("proxy_next_upstream error timeout",
         "proxy_next_upstream error timeout non_idempotent",
         only_what_may_be_is_sent_again)],
}


def it_fails_without_what_it_has(place: Place) -> None:
    for before, after, test in NEEDED[place.kind]:
        changed = Place(place.world, place.kind, before, after)
        try:
            test(changed)
        except (AssertionError, TimeoutError):
            pass
        else:
            raise AssertionError(f"nothing fails without {before!r}")
        finally:
            changed.balancer.__exit__()
        wait_until(lambda: place.waiting() == 0, "nobody waits", WAIT_S)


TESTS = tests_of(globals(), "Place")
if os.environ.get("SHORT"):
    TESTS = [who_leaves_while_it_waits_does_not_get_it,
             its_timeouts_are_longer_than_any_wait, a_watch_is_told_at_once,
             only_what_may_be_is_sent_again]


def of_each() -> list[Callable[[dict[str, Place]], None]]:
    tests = []
    for kind in KINDS:
        for test in TESTS:
            def one(places: dict[str, Place], kind: str = kind,
                    test: Callable[[Place], None] = test) -> None:
                test(places[kind])
            one.__name__ = f"{test.__name__}_{kind}"
            tests.append(one)
    return tests


if __name__ == "__main__":
    sys.exit(play(of_each(), lambda world: {
        kind: Place(world, kind) for kind in KINDS}, kind=Servers))
