#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""redlockctl and what is no redlockd: another service, or a gateway.

Whatever comes, each command ends with a status that says so, with the URL and
what came on one line, and without a secret; no command runs, nothing counts as
released, held or free.

foreign.py [TEST...]
"""
from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from answers import Answer, Answers, Handler
from world import PassOn, Proxy, World, play, tests_of

from certificates import Certificates  # in ../lib
from ports import free_ports

LOST, UNAVAILABLE, FOREIGN, DENIED = 70, 75, 76, 77
BEARER, TOKEN = "bearer-of-a-client", "9999999999999999.of-a-lock"
JSON = "Content-Type: application/json"
HTML = "Content-Type: text/html; charset=utf-8"
GRANT = {"id": "x", "resource": "x", "mode": "exclusive", "token": "1.of-x",
         "fencing_token": 1, "ttl_ms": 3000, "validity_ms": 2000,
         "elapsed_ms": 1, "renew_after_ms": 700}
LOCK = {"id": "x", "resource": "x", "held": True, "version": "1"}
ASKS = ("run", "acquire")
GRANTED = (*ASKS, "extend")
COMMANDS: dict[str, list[str]] = {
    "run": ["run", "-n", "x", "--", "echo", "RAN"],
    "acquire": ["acquire", "-n", "x"],
    "extend": ["extend", "x"],
    "release": ["release", "x"],
    "force": ["release", "--force", "3", "x"],
    "show": ["show", "x"],
    "pool": ["show", "--limit", "2", "x"],
    "list": ["list"],
    "nodes": ["nodes"],
    "watch": ["watch", "x"],
}


def http(status: int, body: bytes | str | dict | list = b"",
         *headers: str, length: int | None = None) -> bytes:
    if isinstance(body, (dict, list)):
        body, headers = json.dumps(body), (*headers, JSON)
    body = body.encode() if isinstance(body, str) else body
    head = [f"HTTP/1.1 {status} Some", "Connection: close", *headers,
            f"Content-Length: {len(body) if length is None else length}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


@dataclass
class Row:
    reply: bytes | Callable[[bytes], bytes] | None  # None: it closes at once
    status: int
    said: str                         # on stderr
    but: tuple[str, ...] = ()         # commands for which it is no such answer
    greets: bool = False              # before it is asked


ROWS: dict[str, Row] = {
    "closes": Row(None, UNAVAILABLE, "https://?"),
    "ssh": Row(b"SSH-2.0-OpenSSH_9.2p1\r\n", FOREIGN, "SSH-2.0-OpenSSH",
               greets=True),
    "smtp": Row(b"220 mx ESMTP\r\n", FOREIGN, '"220 mx ESMTP"', greets=True),
    "redis": Row(b"-ERR unknown command 'GET'\r\n", FOREIGN, "-ERR unknown"),
    "alert": Row(b"\x15\x03\x03\x00\x02\x02\x46", FOREIGN, "https://"),
    "bytes": Row(bytes(range(128, 256)) * 4, FOREIGN, "without HTTP"),
    "empty object": Row(http(200, {}), FOREIGN, 'status 200, application/json: "{}"'),
    "ok": Row(http(200, {"status": "ok"}), FOREIGN, '"status": "ok"'),
    "login": Row(http(200, "\n<!DOCTYPE html>\n<html>", HTML), FOREIGN,
                 'text/html; charset=utf-8: "<!DOCTYPE html>"'),
    "redirect": Row(http(302, "", "Location: https://u:pw@sso.example/in?s=pw"),
                    FOREIGN, "302 to https://sso.example/in,"),
    "moved": Row(http(301, "<a>", "Location: /other", HTML), FOREIGN, "301 to"),
    "400": Row(http(400, "plain HTTP was sent to HTTPS port"), FOREIGN, "400"),
    "401": Row(http(401, "<h1>who?</h1>", HTML), DENIED, "<h1>who?</h1>"),
    "403": Row(http(403, {"error": "forbidden"}), DENIED, "403"),
    "404": Row(http(404, {"code": "lock_not_found"}), FOREIGN, "lock_not_found"),
    "405": Row(http(405, "no POST here"), FOREIGN, "no POST here"),
    "409": Row(http(409, {"code": "not_owner"}), FOREIGN, "409"),
    "429": Row(http(429, "slow down"), UNAVAILABLE, "slow down"),
    "500": Row(http(500, "<h1>oops</h1>", HTML), UNAVAILABLE, "<h1>oops</h1>"),
    "501": Row(http(501, "unsupported"), FOREIGN, "501"),
    "502": Row(http(502, "no upstream"), UNAVAILABLE, "no upstream"),
    "204": Row(b"HTTP/1.1 204 No Content\r\n\r\n", FOREIGN, "204, empty"),
    "cut": Row(http(200, json.dumps(GRANT)[:-9], JSON), FOREIGN, "200"),
    "short": Row(http(200, json.dumps(GRANT)[:-9], JSON, length=999),
                 UNAVAILABLE, "127.0.0.1"),
    "array": Row(http(200, [GRANT]), FOREIGN, "200"),
    "number": Row(http(200, "7", JSON), FOREIGN, '"7"'),
    "huge": Row(http(200, b" " * (17 << 20), JSON), FOREIGN, "endless",
                but=("extend", "release")),  # whose last tries have no time for it
    "grant": Row(http(200, GRANT), FOREIGN, "200", but=GRANTED),
    "a lock": Row(http(200, LOCK), FOREIGN, "200", but=("show", "watch")),
    "another lock": Row(http(200, LOCK | {"id": "y"}), FOREIGN, "200"),
    "another grant": Row(http(200, GRANT | {"id": "y"}), FOREIGN, "200", but=ASKS),
    "not released": Row(http(200, {"id": "x", "released": False}), FOREIGN, "200"),
    "no validity": Row(http(201, GRANT | {"validity_ms": 0}), FOREIGN, "201"),
    "below zero": Row(http(201, GRANT | {"validity_ms": -5}), FOREIGN, "201"),
    **{f"{change}": Row(http(201, GRANT | change), FOREIGN, "201",
                        but=tuple(COMMANDS.keys() - {"run"})) for change in (
        {"elapsed_ms": -9_000_000_000_000_000}, {"elapsed_ms": -1},
        {"elapsed_ms": 2**63 - 1}, {"validity_ms": 2**63 - 1},
        {"renew_after_ms": -2**63}, {"renew_after_ms": 2**40})},
    "text": Row(http(201, GRANT | {"validity_ms": "2000"}), FOREIGN, "201"),
    "no token": Row(http(201, {**GRANT, "token": None}), FOREIGN, "201"),
    "odd token": Row(http(201, GRANT | {"token": "a\r\nX-Evil: 1"}), FOREIGN, "201"),
    "no number": Row(http(201, {**GRANT, "fencing_token": None}), FOREIGN, "201"),
    "no locks": Row(http(200, {"locks": [{}]}), FOREIGN, "200"),
    "no nodes": Row(http(200, {"voting": 3, "quorum": 2}), FOREIGN, "200"),
    "colours": Row(http(200, "\x1b[31mred\x1b[0m"), FOREIGN, "\\u001B[31mred"),
    "long": Row(http(200, "y" * 5000), FOREIGN, '"' + "y" * 79 + '"'),
    "echo": Row(lambda asked: http(200, asked.partition(b"Bearer ")[2]),
                FOREIGN, "200"),
    "echo of a token": Row(lambda asked: http(
        200, asked.partition(b"X-Lock-Token: ")[2]), FOREIGN, "200"),
}


class Other:
    """Answers with a row, whatever is asked, and closes."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                link, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.answer, args=(link,), daemon=True).start()

    def answer(self, link: socket.socket) -> None:
        reply = self.row.reply
        with link, contextlib.suppress(OSError):
            if reply is None:
                return
            asked = b"" if self.row.greets else link.recv(1 << 16)
            link.sendall(reply(asked) if callable(reply) else reply)
            link.shutdown(socket.SHUT_WR)
            while link.recv(1 << 16):  # a reset would overtake the answer
                pass

    def close(self) -> None:
        self.listener.close()


@contextlib.contextmanager
def others(*rows: Row) -> Iterator[list[Other]]:
    opened = [Other(row) for row in rows]
    try:
        yield opened
    finally:
        for other in opened:
            other.close()


def ctl(urls: list[str], *words: str) -> subprocess.CompletedProcess:
    program = os.environ.get("REDLOCKCTL", "build/release/redlockctl")
    return subprocess.run(
        [program, *words], text=True, timeout=40, stdin=subprocess.DEVNULL,
        capture_output=True, check=False,
        env={**os.environ, "REDLOCKD_URL": " ".join(urls),
             "REDLOCKD_AUTH_TOKEN": BEARER, "REDLOCKD_TOKEN": TOKEN})


def check(name: str, row: Row, command: str, other: Other) -> str:
    """What is wrong; "": nothing."""
    done = ctl([f"http://user:secret@127.0.0.1:{other.port}"], *COMMANDS[command])
    said = done.stderr
    is_good = (
        done.returncode == row.status and done.stdout == "" and
        f"http://127.0.0.1:{other.port}" in said and
        # the last of many tries may have too little time left
        (row.said in said or command == "release" and "timed out" in said) and
        said.startswith("redlockctl: ") and said.count("\n") == 1 and
        said[:-1].isprintable() and
        not any(secret in said for secret in ("secret", "pw", BEARER, TOKEN)))
    return "" if is_good else \
        f"{name}, {command}: {done.returncode} {done.stdout!r} {said!r}"


def no_answer_of_another_is_taken(_: World) -> None:
    goes_on = ("watch", "extend", "release")  # for 10 s, or for ever
    with others(*ROWS.values()) as opened, ThreadPoolExecutor(24) as pool:
        tries = [pool.submit(check, name, row, command, other)
                 for (name, row), other in zip(ROWS.items(), opened)
                 for command in COMMANDS
                 if command not in row.but and
                 (row.status != UNAVAILABLE or command not in goes_on or
                  (name, command) == ("500", "release"))]
        wrong = [it.result() for it in tries if it.result()]
    assert not wrong, "\n".join(wrong)


def a_waiting_run_ends(_: World) -> None:
    """At once where it is certain; a gateway may have no way for a moment."""
    for name, least_s, most_s in ("login", 0, 4), ("404", 4, 15):
        with others(ROWS[name]) as [other]:
            began = time.monotonic()
            done = ctl([f"http://127.0.0.1:{other.port}"], "run", "x", "--",
                       "echo", "RAN")
            took = time.monotonic() - began
            assert done.returncode == FOREIGN and done.stdout == "", done
            assert least_s <= took <= most_s, took


def a_waiting_run_tells_its_reason(_: World) -> None:
    with others(ROWS["502"]) as [other]:
        done = ctl([f"http://127.0.0.1:{other.port}"], "run", "-w", "12", "x",
                   "--", "echo", "RAN")
        assert done.returncode == UNAVAILABLE and done.stdout == "", done
        assert "still trying: http://127.0.0.1" in done.stderr, done
        assert done.stderr.count("no upstream") == 2, done


def another_replica_is_asked(world: World) -> None:
    for name in "login", "404", "ssh", "closes", "redirect":
        with others(ROWS[name]) as [other]:
            urls = [f"http://127.0.0.1:{other.port}", world.urls[0]]
            done = ctl(urls, "run", "-t", "3", "-n", "x", "--", "echo", "RAN")
            assert (done.returncode, done.stdout) == (0, "RAN\n"), (name, done)
            for words, status in (["show", "x"], 1), (["list"], 0), (["nodes"], 0):
                done = ctl(urls, *words)
                assert done.returncode == status, (name, done)
                assert done.stderr == "", (name, done)


def a_replica_that_may_come_back_is_waited_for(world: World) -> None:
    """Beside another service, which alone would end it."""
    [port] = free_ports(1)
    with others(ROWS["login"]) as [other]:
        urls = [f"http://127.0.0.1:{other.port}", f"http://127.0.0.1:{port}"]
        began = time.monotonic()
        done = ctl(urls, "run", "-w", "2", "x", "--", "echo", "RAN")
        assert time.monotonic() - began > 1.5, done
        assert done.returncode in (UNAVAILABLE, FOREIGN), done
        assert "gave up" in done.stderr or "login" in done.stderr or \
            "DOCTYPE" in done.stderr, done


class Unheard(PassOn):
    """Loses the answer to a release; with a status, answers that instead of
    asking, as a gateway does."""

    server: UnheardProxy

    def release(self) -> None:
        if self.server.status is not None:
            self.answer(self.server.status, "<h1>no</h1>")
            return
        self.server.is_cut = True
        self.pass_on()
        self.server.is_cut = False

    do_GET = do_POST = do_PUT = PassOn.pass_on
    do_DELETE = release


class UnheardProxy(Proxy):
    def __init__(self, world: World, status: int | None = None) -> None:
        self.status = status
        super().__init__(world.server_ports[0], {}, Unheard)


def taken(url: str, *words: str) -> str:
    """The token."""
    done = ctl([url], "acquire", "-n", "-t", "4", *words)
    assert done.returncode == 0, done
    return done.stdout.partition("REDLOCKD_TOKEN='")[2].partition("'")[0]


def what_was_not_released_is_not_called_so(world: World) -> None:
    """By a replica that is not there, or a gateway that has no way to it; but
    an answer that was lost may have been a release."""
    good = world.urls[1]
    [port] = free_ports(1)
    own = taken(good, "forced")
    for status in 502, 503, 504:
        gateway = UnheardProxy(world, status)
        for url in gateway.url, f"http://127.0.0.1:{port}":
            done = ctl([url, good], "release", "--token", own, "never")
            assert done.returncode == LOST and done.stderr, (url, done)
        gateway.close()
    unheard = UnheardProxy(world)
    done = ctl([unheard.url, good], "release", "--token", own, "forced")
    assert done.returncode == 0, done
    unheard.close()


def a_run_whose_lock_was_lost_says_so(world: World) -> None:
    """Also if the replica in use, or the one behind a gateway, has gone."""
    good = f"http://127.0.0.1:{world.server_ports[1]}"
    first = f"http://127.0.0.1:{world.server_ports[0]}"
    gateway, unheard = UnheardProxy(world, 503), UnheardProxy(world)
    program = os.environ.get("REDLOCKCTL", "build/release/redlockctl")
    for name, url, status in (("unheard", unheard.url, 0),
                              ("behind", gateway.url, LOST), ("in-use", first, LOST)):
        run = subprocess.Popen(
            [program, "run", "-n", "-t", "4", "--url", url, "--url", good, name,
             "--", "sh", "-c", "echo; read -r _"], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert run.stdout and run.stdout.readline() == "\n"
        if status == LOST:
            held = json.loads(ctl([good], "show", "--json", name).stdout)
            number = str(held["fencing_token"])
            assert ctl([good], "release", "--force", number, name).returncode == 0
            taken(good, name)
        if url == first:
            world.kill_server(0)
        _, said = run.communicate("done\n", timeout=40)
        assert run.returncode == status, (name, run.returncode, said)
        assert ("lost while the command ran" in said) == (status == LOST), said
    world.start_server(0)
    gateway.close()
    unheard.close()


def pages_are_followed(_: World) -> None:
    """A lock that changed hands meanwhile is on two of them; the prefix comes
    whole."""
    pages: dict[str, tuple[list[str], dict]] = {
        "": (["x&1", "x&2"], {"next_cursor": "a b"}),
        "a b": (["x&2", "x&3"], {"next_cursor": "c&d"}), "c&d": (["x&4"], {})}

    def choose(request: Handler, _: bytes) -> Answer:
        path, _, query = request.path.partition("?")
        fields = dict(urllib.parse.parse_qsl(query))
        assert path == "/locks" and fields.get("prefix") == "x&", request.path
        names, more = pages[fields.get("cursor", "")]
        return 200, {**more, "locks": [
            {"id": name, "resource": name, "held": True, "remaining_ms": 5000,
             "fencing_token": 7, "owner": "me", "waiters": 0} for name in names]}
    with Answers(choose) as service:
        done = ctl([service.url], "list", "--prefix", "x&")
    assert (done.returncode, done.stdout) == (0, "".join(
        f"x&{n}: held by me, fencing token 7, for 5.0 s\n" for n in range(1, 5))), done


def a_page_that_comes_again_ends_the_list(_: World) -> None:
    page = {"locks": [LOCK], "next_cursor": "more"}
    with others(Row(http(200, page), FOREIGN, "")) as [cache]:
        done = ctl([f"http://127.0.0.1:{cache.port}"], "list")
    assert done.returncode == FOREIGN and "same page of the list twice" in done.stderr, done
    assert done.stdout.count("\n") == 1, done


def nodes_without_a_quorum_are_told(_: World) -> None:
    nodes = {"voting": 1, "quorum": 2, "total": 3, "nodes": []}
    with others(Row(http(200, nodes), UNAVAILABLE, "")) as [other]:
        done = ctl([f"http://127.0.0.1:{other.port}"], "nodes")
    assert done.returncode == UNAVAILABLE and "1 of 3 nodes vote" in done.stdout, done


def a_redis_is_named(world: World) -> None:
    for command, words in COMMANDS.items():
        if command == "watch":
            continue
        done = ctl([f"http://127.0.0.1:{world.ports[0]}"], *words)
        assert done.returncode in (UNAVAILABLE, FOREIGN), done
        assert f"127.0.0.1:{world.ports[0]}" in done.stderr, done
        assert done.stdout == "", done


def tls_and_none_are_told_apart(world: World) -> None:
    with others(ROWS["login"]) as [plain]:
        done = ctl([f"https://127.0.0.1:{plain.port}"], "show", "x")
        assert done.returncode == FOREIGN and "TLS" in done.stderr, done
    done = ctl([world.urls[0].replace("http:", "https:")], "show", "x")
    assert done.returncode == FOREIGN and "http://" in done.stderr, done
    folder = world.folder / "certificates"
    folder.mkdir(exist_ok=True)
    certificates = Certificates(folder)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates["server.pem"], certificates["server.key"])
    listener = socket.create_server(("127.0.0.1", 0))

    def shake_hands() -> None:
        while True:
            try:
                link, _ = listener.accept()
                context.wrap_socket(link, server_side=True).close()
            except (ssl.SSLError, ConnectionError):
                link.close()
            except OSError:
                return

    threading.Thread(target=shake_hands, daemon=True).start()
    done = ctl([f"http://127.0.0.1:{listener.getsockname()[1]}"], "show", "x")
    listener.close()
    assert done.returncode in (UNAVAILABLE, FOREIGN), done
    assert "https://" in done.stderr, done


if __name__ == "__main__":
    sys.exit(play(tests_of(globals(), "World")))
