# SPDX-License-Identifier: MIT
"""Ten thousand connections that do nothing; CROWD=1000 takes fewer. The p99 is
the median of RUNS runs, SECONDS_RUN seconds each; P99_TIMES says how much it may
rise.

  plain  idle ones, silent ones, ones that never read what they asked for, and
         ones that wait for a thousand locks: meanwhile others are served with a
         p99 within 3 times of alone; when they have left, the server's
         descriptors and memory are as before. Those that wait cost little
         memory, and no CPU time
  tls    each connection has shaken hands, and been served once
"""
from __future__ import annotations

import socket
import ssl
import statistics
import time
from collections.abc import Callable

from measure import (Results, allow_descriptors, certified, load, output, request,
                     setting)
from processes import cpu_us, descriptors, rss_kib
from stack import Stack

CROWD = int(setting("CROWD", 10000))
P99_TIMES = setting("P99_TIMES", 3)
CLIENTS, MEMORY_KIB = 8, 4096
RESOURCES, WAITING_KIB = CROWD // 10, 100000
IDLE_S, IDLE_SHARE = 5, 0.05
SHAKEN_KIB = 60  # of memory for each, its handshake included
GET = b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n"
SECURE = ssl._create_unverified_context()
Crowd = list[socket.socket]


# ---- what they do when they have connected ------------------------------------

def idle(crowd: Crowd) -> None:
    for one in crowd:
        one.sendall(GET % b"/livez")
        one.recv(1024)


def silent(_: Crowd) -> None:
    pass


def unread(crowd: Crowd) -> None:
    for one in crowd:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        one.sendall(GET % b"/openapi.yaml" * 2)


def post(one: socket.socket, body: object) -> None:
    one.sendall(request("POST", "/locks", body))


def waiting(crowd: Crowd) -> None:
    """Ten for each lock, which the first connection holds."""
    names = [f"crowd-{time.monotonic_ns()}-{i}" for i in range(RESOURCES)]
    for name in names:
        post(crowd[0], {"resource": name, "ttl_ms": 60000})
        if b" 201 " not in crowd[0].recv(4096):
            raise RuntimeError("a free lock was not granted")
    for i, one in enumerate(crowd[1:]):
        post(one, {"resource": names[i % RESOURCES], "ttl_ms": 1000,
                   "wait_ms": 45000})


def shaken(_: Crowd) -> None:
    """That was done when they connected."""


def shake(one: socket.socket) -> socket.socket:
    """And asks at once: later it would have been silent for too long."""
    secure = SECURE.wrap_socket(one)
    secure.sendall(GET % b"/livez")
    if not secure.recv(1024).startswith(b"HTTP/1.1 200 "):
        raise RuntimeError("not served over TLS")
    return secure


# ---- what others notice -------------------------------------------------------

class Served:
    """The server, and clients that work."""

    def __init__(self, stack: Stack, results: Results, *options: str) -> None:
        self.port = stack.start_server(0, "--log-level", "warn", *options)
        self.pid = stack.servers[0].pid
        self.results = results
        self.load = load(self.port, CLIENTS, setting("SECONDS_RUN", 2),
                         *["-t"] * bool(options))

    def p99_us(self) -> float:
        """The median of some runs."""
        runs = [output(*self.load) for _ in range(int(setting("RUNS", 3)))]
        failures = sum(run["failures"] for run in runs)
        self.results.check(f"failures {failures:.0f}", failures == 0)
        return statistics.median(run["p99_us"] for run in runs)

    def come(self, kind: Callable[[Crowd], None]) -> Crowd:
        """Waits until the server has done what they asked for."""
        crowd = []
        for _ in range(CROWD):
            one = socket.create_connection(("127.0.0.1", self.port))
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            crowd.append(shake(one) if kind is shaken else one)
        kind(crowd)
        before_us, deadline = -1000000, time.monotonic() + 20
        while cpu_us([self.pid]) - before_us > 50000 and \
                time.monotonic() < deadline:
            before_us = cpu_us([self.pid])
            time.sleep(0.5)
        return crowd

    def leave(self, crowd: Crowd, before: int) -> None:
        """Waits until the server has noticed that they left."""
        for one in crowd:
            one.close()
        deadline = time.monotonic() + 30
        while descriptors(self.pid) > before and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(3)  # memory is given back in the sweeps behind that

    def judge_meanwhile(self, kind: Callable, memory_kib: int) -> None:
        """While nothing is released."""
        now_kib, before_us = rss_kib(self.pid), cpu_us([self.pid])
        if kind is shaken:
            each = (now_kib - memory_kib) / CROWD
            self.results.check(f"shaken: {each:.1f} KiB each", each <= SHAKEN_KIB)
        if kind is waiting:
            time.sleep(IDLE_S)
            share = (cpu_us([self.pid]) - before_us) / 1e6 / IDLE_S
            self.results.check(f"waiting: {now_kib} KiB meanwhile",
                               now_kib <= WAITING_KIB)
            self.results.check(f"waiting: {share:.1%} of a core meanwhile",
                               share <= IDLE_SHARE)

    def judge(self, *kinds: Callable[[Crowd], None]) -> None:
        allow_descriptors()
        alone_us = self.p99_us()
        # once before it is measured, as what is made once is no leak
        for kind in kinds:
            self.leave(self.come(kind), 20)
        before, memory_kib = descriptors(self.pid), rss_kib(self.pid)
        check = self.results.check
        for kind in kinds:
            crowd, name = self.come(kind), kind.__name__
            peak_kib = rss_kib(self.pid)
            self.judge_meanwhile(kind, memory_kib)
            among_us = self.p99_us()
            self.leave(crowd, before)
            left, left_kib = descriptors(self.pid), rss_kib(self.pid)
            check(f"{name}: p99 {among_us} us, alone {alone_us} us",
                  among_us <= alone_us * P99_TIMES)
            check(f"{name}: {left} descriptors, {before} before", left <= before)
            check(f"{name}: {left_kib} KiB, {memory_kib} before, {peak_kib} "
                  "meanwhile", left_kib <= memory_kib + MEMORY_KIB)


def plain(stack: Stack, results: Results, _: bool) -> None:
    Served(stack, results).judge(idle, silent, unread, waiting)


def tls(stack: Stack, results: Results, _: bool) -> None:
    Served(stack, results, *certified(
        stack.folder, "ecdsa", "ec", "-pkeyopt", "ec_paramgen_curve:P-256")).judge(
            shaken)


SCENES = {"plain": plain, "tls": tls}
