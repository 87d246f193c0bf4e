"""Requests and their answers over an asyncio event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from ._clock import now
from ._identity import Identity
from ._sockets import not_connected
from ._wire import (
    LONGEST_IDLE_S,
    MOST_IDLE,
    SOON_S,
    Ask,
    Failure,
    Reader,
    Reply,
    Stale,
    Target,
    Unsent,
)


class Line(asyncio.Protocol):
    """One connection."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, is_tunnel: bool = False
    ) -> None:
        self._loop = loop
        self._reader = Reader(is_tunnel=is_tunnel)
        self._transport: asyncio.Transport | None = None
        self._reply: asyncio.Future[Reply] | None = None
        self._began = self._deadline = 0.0  # of the request, on its clock
        self.is_kept = False
        self.idle_since = 0.0
        self.has_ended = False

    def close(self) -> None:
        """At once: what is under way is given up."""
        self.has_ended = True
        if self._transport:
            self._transport.abort()

    async def exchange(self, ask: Ask) -> Reply:
        """Raises Failure. The connection then cannot be used any more."""
        self._reader.begin()
        assert self._transport
        reply: asyncio.Future[Reply] = self._loop.create_future()
        self._reply = reply
        self._began = self._loop.time()
        expected = self._began + ask.wait_s
        self._deadline = expected + ask.timeout_s
        self._timer = self._loop.call_at(
            min(expected + ask.overdue_s, self._deadline),
            self._overdue,
            ask.on_overdue,
        )
        if self.has_ended:
            self._fail(Failure("the connection was closed"))
        else:
            self._transport.write(ask.request)
        try:
            return await reply
        finally:
            self._reply = None
            self._timer.cancel()

    def _overdue(self, on_overdue: Callable[[], None]) -> None:
        if self._loop.time() < self._deadline:
            on_overdue()
            self._timer = self._loop.call_at(self._deadline, self._expire)
        else:
            self._expire()

    def _expire(self) -> None:
        if self._reply and not self._reply.done():
            self._reply.set_exception(Failure("no answer in time"))

    def _fail(self, failure: Failure) -> None:
        if self._reply and not self._reply.done():
            is_soon = self._loop.time() - self._began < SOON_S
            if self.is_kept and not self._reader.has_begun and is_soon:
                failure = Stale(str(failure))
            self._reply.set_exception(failure)

    # ---- called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # those of uvloop are no subclass of asyncio's
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._reply or self._reply.done():
            self.close()  # what nobody asked
            return
        try:
            reply = self._reader.feed(data)
        except Failure as failure:
            self._fail(failure)
            return
        if reply:
            self._reply.set_result(reply)

    def eof_received(self) -> None:
        self.connection_lost(None)

    def connection_lost(self, error: Exception | None) -> None:
        self.has_ended = True
        if not self._reply or self._reply.done():
            return
        if error:
            self._fail(Failure("the connection was reset"))
            return
        try:
            self._reply.set_result(self._reader.end())
        except Failure as failure:
            self._fail(failure)


class Pool:
    """Connections of one event loop, and which of them are idle."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._idle: dict[Target, deque[Line]] = {}
        self._loop = asyncio.get_running_loop()
        self._is_closed = False

    @property
    def is_of_this_loop(self) -> bool:
        return self._loop is asyncio.get_running_loop()

    def close(self) -> None:
        """Those that are in use are closed after that."""
        self._is_closed = True
        if self._loop.is_closed():  # and with it, their transports
            return
        for lines in self._idle.values():
            for line in lines:
                line.close()
        self._idle.clear()

    async def ask(self, ask: Ask) -> Reply:
        """Raises Failure."""
        line = self._take(ask.target)
        if line:
            try:
                return await self._exchange(line, ask)
            except Stale:
                if not ask.is_repeatable:
                    raise
        return await self._exchange(await self._open(ask), ask)

    async def _exchange(self, line: Line, ask: Ask) -> Reply:
        try:
            reply = await line.exchange(ask)
        except BaseException:
            line.close()
            raise
        lines = self._idle.get(ask.target)
        if lines is None:
            lines = self._idle[ask.target] = deque()
        line.idle_since = now()
        is_kept = reply.is_kept and not line.has_ended and not self._is_closed
        if is_kept and len(lines) < MOST_IDLE:
            lines.append(line)
        else:
            line.close()
        return reply

    def _take(self, target: Target) -> Line | None:
        lines = self._idle.get(target)
        while lines:
            line = lines.pop()
            is_old = now() - line.idle_since > LONGEST_IDLE_S
            if not line.has_ended and not is_old:
                line.is_kept = True
                return line
            line.close()
        return None

    async def _open(self, ask: Ask) -> Line:
        timer = self._loop.call_later(ask.overdue_s, ask.on_overdue)
        try:
            async with asyncio.timeout(ask.timeout_s):
                return await self._connect(ask.target)
        except OSError as error:  # as a TimeoutError is
            raise not_connected(error, ask.target) from None
        finally:
            timer.cancel()

    async def _connect(self, target: Target) -> Line:
        context = self._identity.context if target.is_tls else None
        loop = self._loop
        how: dict[str, Any] = {}
        if isinstance(loop, asyncio.BaseEventLoop):  # uvloop lacks it
            how.update(happy_eyeballs_delay=0.25)
        if context and not target.is_tunnel:
            how.update(ssl=context, server_hostname=target.host)
        transport, line = await loop.create_connection(
            lambda: Line(loop, is_tunnel=target.is_tunnel),
            *target.address,
            **how,
        )
        if not context or not target.is_tunnel:
            return line
        try:
            await _tunnel(line, target)
            inner = Line(loop)
            tls = await loop.start_tls(
                transport, inner, context, server_hostname=target.host
            )
        except BaseException:
            line.close()
            raise
        if not tls:
            raise ConnectionResetError
        inner.connection_made(tls)
        return inner


async def _tunnel(line: Line, target: Target) -> None:
    limit_s = 3600.0  # that of the connection is shorter
    ask = Ask(
        target, target.tunnel(), limit_s, 0.0, False, limit_s, lambda: None
    )
    try:
        reply = await line.exchange(ask)
    except Failure as failure:
        raise Unsent(f"the proxy: {failure}") from None
    if not 200 <= reply.status < 300:
        raise Unsent(f"the proxy refuses the connection ({reply.status})")
