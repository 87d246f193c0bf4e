# SPDX-License-Identifier: MIT
"""Proves at the start of each run that proxy, clocks and clients do what they
are told: a fault that does nothing would make every test pass. No server runs
yet.
"""
from __future__ import annotations

import itertools
import socket
import ssl
import time

import memorytest
from balancer import Balancer
from changestest import test_both_machines
from cluster import Cluster, is_ready
from connection import (ASKING, BEHIND, CLOSE, HALF, READING, RESET, UNREAD,
                        WAITING, Connection, Leave)
from history import ACQUIRE, Call
from jobs import Job
from nodes import Node, Redis, reply_end
from spreadtest import test_read
from stream import Plain, Secure
from tls import Tls

S, N = 2, 4  # the pair that is tried
PATIENCES_MS = (300, 1000, 4000)  # a busy machine may need a longer one
Contexts = tuple[ssl.SSLContext | None, ssl.SSLContext | None]


class Link:
    """A connection through the proxy, which counts with INCR."""

    def __init__(self, cluster: Cluster) -> None:
        port = cluster.proxy.ports[S][N]
        self.socket = socket.create_connection(("127.0.0.1", port), 10)

    def count(self, key: str = "k") -> None:
        self.socket.sendall(f"INCR {key}\r\n".encode())

    def reply(self, timeout_s: float = 10) -> bytes:
        """Empty: the end. Raises TimeoutError if nothing comes."""
        self.socket.settimeout(timeout_s)
        return self.socket.recv(64)

    def is_silent(self) -> bool:
        try:
            self.reply(0.1)
            return False
        except TimeoutError:
            return True


def test_replies() -> None:
    whole = b"*3\r\n$5\r\na\r\nbc\r\n*-1\r\n*2\r\n:12\r\n$-1\r\n"
    for text in (whole, b"+OK\r\n", b"-ERR no\r\n", b"$-1\r\n", b"*0\r\n"):
        assert reply_end(text + b"+next") == len(text), text
        for cut in range(len(text)):
            assert reply_end(text[:cut]) is None, f"{cut} bytes of {text!r}"


def test_clock(node: Node) -> None:
    def ahead_s() -> float:
        with Redis(node, 10) as redis:
            words = redis.ask("TIME").split(b"\r\n")
        return int(words[2]) + int(words[4]) / 1e6 - time.time()
    assert abs(ahead_s()) < 5, "a clock that nobody touched"
    node.clock.set(3600)
    assert abs(ahead_s() - 3600) < 5, "a step"
    with Redis(node, 10) as redis:
        redis.ask("SET", "k", "1", "PX", "60000")
        node.clock.set(3700)
        assert b"$-1" in redis.ask("GET", "k"), "keys end by that clock"
    node.clock.set(0, 1000)
    time.sleep(0.05)
    assert ahead_s() > 20, "a clock that runs 1001 times as fast"
    node.clock.set(0)


def is_slow_in_one_way(cluster: Cluster, link: Link, ms: int) -> bool:
    """What is sent has arrived when the answer is still to come."""
    key = f"lag{ms}"
    cluster.proxy.tell("delay", S, N, 1, ms, 1)
    cluster.proxy.sync()
    begin = time.monotonic()
    link.count(key)
    with Redis(cluster.nodes[N], 10) as redis:
        while b"$1" not in redis.ask("GET", key):
            assert time.monotonic() - begin < 10, "it never arrived"
    took_s = time.monotonic() - begin
    assert link.reply() == b":1\r\n" and \
        time.monotonic() - begin >= ms / 1000, "that way is not slow"
    cluster.proxy.tell("delay", S, N, 1, 0, 0)
    return took_s < ms / 1000


def test_delay(cluster: Cluster) -> None:
    link = Link(cluster)
    cluster.proxy.tell("delay", S, N, 0, 60, 0)
    cluster.proxy.tell("delay", S, N, 1, 60, 1)
    cluster.proxy.sync()
    begin = time.monotonic()
    link.count()
    assert link.reply() == b":1\r\n" and time.monotonic() - begin >= 0.12
    for way in (0, 1):
        cluster.proxy.tell("delay", S, N, way, 0, 0)
    assert any(is_slow_in_one_way(cluster, link, ms) for ms in PATIENCES_MS), \
        "that way is slow, too"
    cluster.proxy.tell("slice", S, N, 1)
    link.count()
    assert link.reply()[:1] == b":"
    cluster.proxy.tell("slice", S, N, 0)


def test_stall(cluster: Cluster) -> None:
    """What is stalled arrives later, also when its sender has closed."""
    for way in (0, 1):
        cluster.proxy.tell("stall", S, N, way, 1)
        cluster.proxy.sync()
        link = Link(cluster)
        link.count(f"stall{way}")
        assert link.is_silent(), f"stalled way {way}"
        with Redis(cluster.nodes[N], 10) as redis:
            deadline = time.monotonic() + 10 * way
            while not (reached := b"$1" in redis.ask("GET", f"stall{way}")):
                if time.monotonic() > deadline:
                    break
        assert reached == (way == 1), "the other way is open"
        if way == 0:
            link.socket.close()
        cluster.proxy.tell("stall", S, N, way, 0)
        if way == 1:
            assert link.reply() == b":1\r\n"
    with Redis(cluster.nodes[N], 10) as redis:
        deadline = time.monotonic() + 10
        while b"$1" not in redis.ask("GET", "stall0"):
            assert time.monotonic() < deadline, "it never arrived"


def is_held_alone(cluster: Cluster, link: Link, ms: int) -> bool:
    """A new connection is not held, and the other one is let go in the end."""
    key = f"held{ms}"
    cluster.proxy.tell("hold", S, N, 0, ms)
    cluster.proxy.sync()
    link.count(key)
    is_silent = link.is_silent()
    other = Link(cluster)
    other.count(key)
    replies = [other.reply()]
    if is_silent:
        replies.append(link.reply())
    other.socket.close()
    return replies == [b":1\r\n", b":2\r\n"]


def test_connections(cluster: Cluster) -> None:
    link, other = Link(cluster), Link(cluster)
    for one in (link, other):
        one.count("held")
        one.reply()
    assert any(is_held_alone(cluster, link, ms) for ms in PATIENCES_MS), "held"
    cluster.proxy.tell("finish", S, N, 1)
    assert link.reply() == b"" and other.reply() == b"", "half-closed"
    link = Link(cluster)
    link.count("held")
    link.reply()
    cluster.proxy.tell("reset", S, N)
    try:
        assert link.reply() is None, "not reset"
    except ConnectionResetError:
        pass


# ---- clients -----------------------------------------------------------------

ANSWER = (b"HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
          b"Content-Length: 12\r\n\r\n{\"token\": 1}")


def serve_one(listener: socket.socket, context: ssl.SSLContext | None,
              seen: list[str]) -> None:
    """Answers one request, however much of it comes, and notes the end."""
    plain, _ = listener.accept()
    plain.settimeout(10)
    peer = Secure(plain, context) if context else Plain(plain)
    try:
        text = peer.receive()
        if text.endswith(b"{}"):
            peer.send(ANSWER)
        seen.append("end" if peer.receive() == b"" else "more")
    except ValueError:  # a record that is cut, and then a goodbye
        seen.append("end")
    except ConnectionResetError:
        seen.append("reset")
    finally:
        peer.close()


def test_leave(listener: socket.socket, leave: Leave,
               contexts: Contexts) -> None:
    """As its server sees it. contexts: of the client, the server."""
    seen: list[str] = []
    server = Job(serve_one, listener, contexts[1], seen)
    server.start()
    call = Call(ACQUIRE, 0, 0, ("r",))
    connection = Connection(listener.getsockname(), context=contexts[0])
    connection.request(call, "POST /locks HTTP/1.1\r\n", b"{}", leave)
    server.join(10)
    is_asking = leave.when == ASKING
    is_read = leave.when == BEHIND or (leave.how == HALF and not is_asking)
    assert call.status == (201 if is_read else 0), (leave, call)
    assert is_read or call.code == "vanished", (leave, call)
    # what was not read makes a reset of any end
    ends = {RESET: {"reset"}, HALF: {"end"},
            CLOSE: {"end"} if is_read or is_asking else {"end", "reset"}}
    assert set(seen) <= ends[leave.how] and seen, (leave, seen)
    assert not connection.stream, "it does not go on"


def test_leaves(tls: Tls | None) -> None:
    """Each way in which a client leaves."""
    pairs: list[Contexts] = [(None, None)]
    if tls:
        pairs = [(client, tls.listening())
                 for client in (tls.context, tls.old_context)]
    with socket.create_server(("127.0.0.1", 0)) as listener:
        for leave in itertools.starmap(Leave, itertools.product(
                (ASKING, WAITING, UNREAD, READING, BEHIND),
                (RESET, CLOSE, HALF), (0.4, 0.9), (0.05,), (False, True))):
            for contexts in pairs:
                test_leave(listener, leave, contexts)


def test_balancer(balancer: Balancer) -> None:
    """Servers run, and are ready."""
    for addresses in balancer.addresses:
        for address in addresses:
            assert is_ready(address, balancer.tls), f"nobody behind {address}"


def run(cluster: Cluster, quarantine_s: float) -> None:
    test_replies()
    cluster.wait_for_nodes()
    for node in cluster.nodes:
        test_clock(node)
    test_read(cluster.nodes[0])
    if not cluster.config.tls:  # the proxy passes bytes, whatever they are
        test_delay(cluster)
        test_stall(cluster)
        test_connections(cluster)
        test_both_machines(cluster)
    test_leaves(cluster.config.tls)
    memorytest.run(cluster, quarantine_s)
    for node in cluster.nodes:
        with Redis(node, 10) as redis:
            redis.ask("FLUSHALL")
