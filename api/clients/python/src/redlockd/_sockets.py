# SPDX-License-Identifier: MIT
"""Requests and their answers over sockets that block, for threads."""

from __future__ import annotations

import errno
import os
import select
import selectors
import socket
from typing import Any

from ._clock import now
from ._identity import Identity, is_untrusted
from ._idle import Idle
from ._wire import (
    SOON_S,
    Ask,
    Failure,
    Reader,
    Reply,
    Stale,
    Target,
    Unsent,
    Untrusting,
)

_PIECE = 64 * 1024


def _reason(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, ConnectionError):
        return "the connection was reset"
    return str(error.strerror or error)


def not_connected(error: OSError, target: Target) -> Failure:
    """TimeoutError: in the time that was left."""
    if is_untrusted(error):
        return Untrusting(str(error))
    if isinstance(error, TimeoutError):
        return Unsent("not connected in time")
    via = "the proxy: " if target.address[0] != target.host else ""
    return Unsent(via + _reason(error))


class Line:
    """One connection."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.reader = Reader()
        self.is_kept = False
        self.idle_since = 0.0
        self._poll = None
        if hasattr(select, "poll"):
            self._poll = select.poll()
            self._poll.register(sock, select.POLLIN)

    @property
    def has_ended(self) -> bool:
        """An idle connection that can be read has ended, or tells what nobody
        asked."""
        if self._poll:
            return bool(self._poll.poll(0))
        return bool(select.select([self.sock], [], [], 0)[0])

    def close(self) -> None:
        self.sock.close()

    def exchange(self, ask: Ask) -> Reply:
        """Raises Failure. The connection then cannot be used any more."""
        began = now()
        expected = began + ask.wait_s
        reader = self.reader
        reader.begin()
        try:
            self.sock.settimeout(ask.timeout_s)
            self.sock.sendall(ask.request)
            while True:
                data = self._receive(ask, expected)
                reply = reader.feed(data) if data else reader.end()
                if reply:
                    return reply
        except TimeoutError:
            raise Failure("no answer in time") from None
        except OSError as error:
            failure = Failure(_reason(error))
        except Failure as error:
            failure = error
        is_soon = now() - began < SOON_S
        if self.is_kept and not reader.has_begun and is_soon:
            raise Stale(str(failure))
        raise failure

    def _receive(self, ask: Ask, expected: float) -> bytes:
        time = now()
        deadline = expected + ask.timeout_s
        overdue_at = expected + ask.overdue_s
        if time < overdue_at < deadline:
            self.sock.settimeout(overdue_at - time)
            try:
                return self.sock.recv(_PIECE)
            except TimeoutError:
                ask.on_overdue()
                time = now()
        if time >= deadline:
            raise TimeoutError
        self.sock.settimeout(deadline - time)
        return self.sock.recv(_PIECE)


class Pool:
    """Connections, and which of them are idle. Threads may share it."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._idle: Idle[Line] = Idle()
        self.close = self._idle.close

    def ask(self, ask: Ask) -> Reply:
        """Raises Failure."""
        line = self._idle.take(ask.target)
        if line:
            try:
                return self._exchange(line, ask)
            except Stale:
                ask.is_repeated = True
        return self._exchange(self._open(ask), ask)

    def _exchange(self, line: Line, ask: Ask) -> Reply:
        try:
            reply = line.exchange(ask)
        except BaseException:
            line.close()
            raise
        self._idle.give_back(ask.target, line, reply.is_kept)
        return reply

    def _open(self, ask: Ask) -> Line:
        target = ask.target
        context = self._identity.context if target.is_tls else None
        began = now()
        try:
            sock = _connect(ask)
        except OSError as error:
            raise not_connected(error, target) from None
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            deadline = began + ask.timeout_s
            if target.is_tunnel:
                _tunnel(sock, target, deadline)
            if context:
                sock.settimeout(max(deadline - now(), 0.001))
                sock = context.wrap_socket(sock, server_hostname=target.host)
            return Line(sock)
        except OSError as error:
            sock.close()
            raise not_connected(error, target) from None
        except BaseException:
            sock.close()
            raise


def _connect(ask: Ask) -> socket.socket:
    """Its addresses one after the other; all of them in that time."""
    began = now()
    host, port = ask.target.address
    # as a text, it would load tables of Unicode first
    name = host.encode("ascii")
    addresses = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    failure = OSError("the host has no address")
    for number, (family, kind, protocol, _, address) in enumerate(addresses):
        # the next address, too, gets its share
        share_s = (began + ask.timeout_s - now()) / (len(addresses) - number)
        try:
            return _try(
                ask, share_s, socket.socket(family, kind, protocol), address
            )
        except OSError as error:
            failure = error
    raise failure


def _try(
    ask: Ask, share_s: float, sock: socket.socket, address: tuple[Any, ...]
) -> socket.socket:
    try:
        sock.setblocking(False)
        code = sock.connect_ex(address)
        if code in (errno.EINPROGRESS, errno.EWOULDBLOCK):
            with selectors.DefaultSelector() as selector:
                selector.register(sock, selectors.EVENT_WRITE)
                first_s = min(share_s, ask.overdue_s)
                is_done = bool(selector.select(max(first_s, 0.001)))
                if not is_done and share_s > first_s:
                    ask.on_overdue()
                    is_done = bool(selector.select(share_s - first_s))
            if not is_done:
                raise TimeoutError
            code = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        if code:
            raise OSError(code, os.strerror(code))
        sock.settimeout(ask.timeout_s)
        return sock
    except BaseException:
        sock.close()
        raise


def _tunnel(sock: socket.socket, target: Target, deadline: float) -> None:
    reader = Reader(is_tunnel=True)
    sock.sendall(target.tunnel())
    while True:
        left_s = deadline - now()
        if left_s <= 0:
            raise TimeoutError
        sock.settimeout(left_s)
        # one byte at a time: what follows the head is not ours
        data = sock.recv(1)
        try:
            reply = reader.feed(data) if data else reader.end()
        except Failure as failure:
            raise Unsent(f"the proxy: {failure}") from None
        if reply:
            break
    if not 200 <= reply.status < 300:
        raise Unsent(f"the proxy refuses the connection ({reply.status})")
