# SPDX-License-Identifier: MIT
"""Requests of every kind, whose clients leave at random moments, over nodes that
stand still, die and come back: the server must live, report nothing, and need no
more memory in the end than half-way. Then it is told to stop amid requests, and
must exit with 0.
REQUESTS (200,000) and SEED change what is asked; REDLOCKD names the server, best
one with sanitizers.
"""
from __future__ import annotations

import json
import os
import random
import re
import selectors
import signal
import socket
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from measure import Results, request, setting
from processes import end, rss_kib
from stack import NODES, Stack

AT_ONCE = 64
GROWTH_KIB = 16 * 1024  # of what the allocator keeps
SETTLED = 20000  # requests: until then it grows to what so many need at once
STOP_S = 60
OPTIONS = ("--restart-guard", "off", "--node-timeout-ms", "100",
           "--drain-ms", "200", "--max-ttl-ms", "5000")
CALLS = re.compile(r"^ {2}(/\S*):$|^ {4}(get|put|post|delete):$", re.MULTILINE)


@dataclass
class Known:
    """What clients have been told: locks as (id, token, number)."""

    chance: random.Random
    locks: list[tuple[str, str, int]] = field(default_factory=list)

    def note(self, text: bytes) -> None:
        body = text.partition(b"\r\n\r\n")[2]
        try:
            answer = json.loads(body)
            lock = answer["id"], answer["token"], answer["fencing_token"]
        except (ValueError, KeyError, TypeError):
            return
        self.locks.append(lock)
        del self.locks[:-200]

    def pick(self) -> tuple[str, str, int]:
        if self.locks and self.chance.random() < 0.9:
            return self.chance.choice(self.locks)
        return "bG9jazA", "1795221641865000." + "8f1c27a5" * 5, 1795221641865000


def acquire(known: Known) -> bytes:
    chance = known.chance
    wish: dict[str, object] = {"ttl_ms": chance.choice((100, 1000, 5000)),
                               "owner": "leaver"}
    names = [f"lock{chance.randrange(12)}" for _ in range(3)]
    kind = chance.randrange(6)
    if kind == 0:
        wish["resources"] = sorted(set(names))
    else:
        wish["resource"] = names[0]
    if kind == 1:
        wish["mode"] = "shared"
    if kind in (2, 3):
        limit = chance.choice((1, 3, 20))
        wish |= {"resource": f"pool{chance.randrange(5)}", "limit": limit,
                 "permits": chance.randint(1, min(limit, 3))}
    if chance.random() < 0.4:
        wish["wait_ms"] = chance.choice((1, 50, 2000))
    keys = ([f"Idempotency-Key: key-of-a-leaver-{chance.randrange(500)}"]
            if chance.random() < 0.5 else [])
    return request("POST", "/locks", wish, *keys)


def extend(known: Known) -> bytes:
    name, token, _ = known.pick()
    wish: dict[str, object] = {"ttl_ms": 1000}
    if known.chance.random() < 0.2:
        wish["mode"] = "shared"
    return request("PUT", f"/locks/{name}/extend", wish, f"X-Lock-Token: {token}")


def ask_many(known: Known) -> bytes:
    locks = {name: token for name, token, _ in (
        known.pick() for _ in range(known.chance.randint(1, 20)))}
    operations = [
        {"operation": "acquire", "resource": f"{name}:too", "ttl_ms": 1000}
        if known.chance.random() < 0.3 else
        {"operation": known.chance.choice(("extend", "extend", "release")),
         "id": name, "token": token} for name, token in locks.items()]
    return request("POST", "/batch", {"operations": operations})


def release(known: Known) -> bytes:
    name, token, number = known.pick()
    force = known.chance.choice((None, None, number, "all"))
    if force is None:
        return request("DELETE", f"/locks/{name}", None, f"X-Lock-Token: {token}")
    return request("DELETE", f"/locks/{name}?force={force}")


def look(known: Known) -> bytes:
    name, _, number = known.pick()
    asked = known.chance.choice((
        "", f"?after={number}&wait_ms=2000",
        "?after=free&wait_ms=50", "?after=free&wait_ms=2000"))
    method = known.chance.choice(("GET", "GET", "GET", "HEAD", "OPTIONS"))
    return request(method, f"/locks/{name}{asked}")


def list_some(known: Known) -> bytes:
    return request("GET", known.chance.choice((
        "/locks", "/locks?page_size=1", "/locks?prefix=lock&page_size=100",
        "/locks?cursor=none")))


def see_pool(known: Known) -> bytes:
    name, _, _ = known.pick()
    return request("GET", f"/pools/{name}?limit={known.chance.choice((1, 3, 900))}")


def read_only(path: str) -> Callable[[Known], bytes]:
    return lambda _: request("GET", path)


# what is no API
PAGES = ("/openapi.yaml", "/docs", "/", "/page.css", "/page.js", "/page.svg")
# What openapi.yaml has must be here, and how often each is asked.
KINDS = {
    ("/locks", "get"): (4, list_some),
    ("/locks", "post"): (40, acquire),
    ("/batch", "post"): (6, ask_many),
    ("/locks/{id}", "get"): (20, look),
    ("/locks/{id}", "delete"): (12, release),
    ("/locks/{id}/extend", "put"): (10, extend),
    ("/pools/{id}", "get"): (4, see_pool),
    **{(path, "get"): (1, read_only(path)) for path in (
        "/nodes", "/livez", "/readyz", "/metrics", *PAGES)},
}


def documented() -> set[tuple[str, str]]:
    text = Path("openapi.yaml").read_text()
    calls, path = set(), ""
    for found in CALLS.finditer(text):
        path = found[1] or path
        if found[2]:
            calls.add((path, found[2]))
    return calls


@dataclass(eq=False)
class Talk:
    """One client: it reads its answer, or leaves at some moment."""

    peer: socket.socket
    text: bytes
    leaves_s: float = 0.0  # when; 0: not before its answer
    is_reset: bool = False
    answer: bytes = b""


class Crowd:
    """Clients that come one after the other, so many at once."""

    def __init__(self, port: int, chance: random.Random) -> None:
        self.port, self.chance = port, chance
        self.known = Known(chance)
        self.selector = selectors.DefaultSelector()
        self.talks: set[Talk] = set()
        self.counts: Counter[str] = Counter()
        self.calls = list(KINDS)
        self.weights = [weight for weight, _ in KINDS.values()]

    def come(self) -> None:
        call = self.chance.choices(self.calls, self.weights)[0]
        text = KINDS[call][1](self.known)
        peer = socket.create_connection(("127.0.0.1", self.port), 20)
        talk = Talk(peer, text)
        moment = self.chance.random()
        if moment < 0.45:
            talk.leaves_s = time.monotonic() + self.chance.choice(
                (0, 0, 0.0005, 0.002, 0.02, 0.1)) * self.chance.random()
            talk.is_reset = self.chance.random() < 0.3
        if moment < 0.05:  # in the middle of it
            talk.text = text[:self.chance.randrange(len(text))]
        peer.sendall(talk.text)
        self.counts[" ".join(call)] += 1
        self.talks.add(talk)
        self.selector.register(peer, selectors.EVENT_READ, talk)

    def end(self, talk: Talk) -> None:
        self.selector.unregister(talk.peer)
        if talk.is_reset:
            talk.peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                 b"\1\0\0\0\0\0\0\0")
        talk.peer.close()
        self.talks.discard(talk)

    def read(self, talk: Talk) -> None:
        try:
            piece = talk.peer.recv(1 << 18)
        except OSError:
            piece = b""
        talk.answer += piece
        head, end, body = talk.answer.partition(b"\r\n\r\n")
        length = re.search(rb"(?i)content-length: (\d+)", head)
        has_body = length is not None and not talk.text.startswith(b"HEAD")
        is_whole = bool(end) and (not has_body or len(body) >= int(length[1]))
        if piece and not is_whole:
            return
        self.counts["answered"] += is_whole
        self.counts["status " + head[9:12].decode()] += is_whole
        self.known.note(talk.answer)
        self.end(talk)

    def go_on(self) -> None:
        for key, _ in self.selector.select(0.001):
            self.read(key.data)
        now_s = time.monotonic()
        for talk in [one for one in self.talks if 0 < one.leaves_s <= now_s]:
            self.counts["left"] += 1
            self.end(talk)

    def leave(self) -> None:
        for talk in list(self.talks):
            self.end(talk)


class Faults:
    """One after the other: nodes that stand still, that die; a reload."""

    def __init__(self, stack: Stack, chance: random.Random) -> None:
        self.stack, self.chance = stack, chance
        self.stopped: list[int] = []
        self.next_s = time.monotonic() + 1
        self.count = 0

    def go_on(self) -> None:
        if time.monotonic() < self.next_s:
            return
        self.next_s = time.monotonic() + self.chance.uniform(0.1, 0.5)
        if self.stopped:
            self.end()
            return
        self.count += 1
        kind = self.chance.randrange(4)
        if kind == 0:
            node = self.chance.randrange(NODES)
            end(self.stack.nodes[node])
            self.stack.nodes[node] = self.stack.start_node(node)
        elif kind == 1:
            self.stack.servers[0].send_signal(signal.SIGHUP)
        else:
            self.stopped = self.chance.sample(range(NODES),
                                              self.chance.choice((1, 3, 5)))
            for node in self.stopped:
                self.stack.nodes[node].send_signal(signal.SIGSTOP)

    def end(self) -> None:
        for node in self.stopped:
            self.stack.nodes[node].send_signal(signal.SIGCONT)
        self.stopped = []


def play(stack: Stack, requests: int, chance: random.Random) -> list[int]:
    """RSS after each tenth."""
    crowd = Crowd(stack.start_server(0, *OPTIONS), chance)
    faults, sizes = Faults(stack, chance), []
    server = stack.servers[0]
    for number in range(1, requests + 1):
        while len(crowd.talks) >= AT_ONCE:
            crowd.go_on()
        crowd.come()
        crowd.go_on()
        faults.go_on()
        if number % max(requests // 10, 1) == 0:
            sizes.append(rss_kib(server.pid))
            print(f"{number} requests, {faults.count} faults: RSS {sizes[-1]} "
                  f"KiB; {crowd.counts['left']} left", flush=True)
    server.terminate()
    faults.end()
    until_s = time.monotonic() + STOP_S
    while server.poll() is None and time.monotonic() < until_s:
        crowd.go_on()
    crowd.leave()
    print(dict(sorted(crowd.counts.items())))
    return sizes


def judge(stack: Stack, sizes: list[int], requests: int) -> list[str]:
    log = (stack.folder / "server0.log").read_text(errors="replace")
    status, wrong = stack.servers[0].poll(), []
    if status != 0:
        wrong.append(f"the server ended with {status}")
    for word in "Sanitizer", "runtime error", "Assertion":
        if word in log:
            at = log.index(word)
            wrong.append(log[max(at - 200, 0):at + 3000])
    if requests >= SETTLED and sizes and \
            max(sizes[-2:]) > sizes[len(sizes) // 2] + GROWTH_KIB:
        wrong.append(f"RSS has grown: {sizes}")
    return wrong


def leavers(stack: Stack, results: Results, _: bool) -> None:
    seed = int(setting("SEED", random.randrange(1 << 31)))
    print(f"seed {seed}")
    pages = {(path, "get") for path in PAGES}
    unknown = documented() ^ (set(KINDS) - pages)
    results.check(f"not asked, or not documented: {unknown or 'none'}",
                  not unknown)
    # what was freed is kept for a while, to be recognised: not for ever
    os.environ["ASAN_OPTIONS"] = ("quarantine_size_mb=16:" +
                                  os.environ.get("ASAN_OPTIONS", ""))
    sizes: list[int] = []
    wrong = []
    requests = int(setting("REQUESTS", 200000))
    try:
        sizes = play(stack, requests, random.Random(seed))
    except OSError as error:
        wrong.append(repr(error))
        end(stack.servers.get(0))
    for text in wrong + judge(stack, sizes, requests):
        results.check(text, False)
    results.check("the server lived, and reported nothing", results.failed == 0)


SCENES = {"leavers": leavers}
