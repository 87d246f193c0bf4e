# SPDX-License-Identifier: MIT
"""Requests and their answers over an asyncio event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from ._identity import Identity
from ._idle import Idle
from ._sockets import not_connected
from ._wire import (
    SOON_S,
    Ask,
    Failure,
    Reader,
    Reply,
    Stale,
    Target,
    Unsent,
)

End = Reply | Failure


class Line(asyncio.Protocol):
    """One connection."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, *, is_tunnel: bool = False
    ) -> None:
        self._loop = loop
        self._reader = Reader(is_tunnel=is_tunnel)
        self._transport: asyncio.Transport | None = None
        self._on_end: Callable[[End], None] | None = None
        self._began = self._deadline = 0.0  # of the request, on its clock
        self.is_kept = False
        self.idle_since = 0.0
        self.has_ended = False

    def close(self) -> None:
        """At once: what is under way is given up."""
        self.has_ended = True
        if self._transport:
            self._transport.abort()

    def ask(self, ask: Ask, on_end: Callable[[End], None]) -> None:
        """Calls back once. After a Failure the connection cannot be used any
        more."""
        self._reader.begin()
        assert self._transport
        self._on_end = on_end
        self._began = self._loop.time()
        expected = self._began + ask.wait_s
        self._deadline = expected + ask.timeout_s
        self._timer = self._loop.call_at(
            min(expected + ask.overdue_s, self._deadline),
            self._overdue,
            ask.on_overdue,
        )
        if self.has_ended:
            self._loop.call_soon(
                self._fail, Failure("the connection was closed")
            )
        else:
            self._transport.write(ask.request)

    async def exchange(self, ask: Ask) -> Reply:
        """Raises Failure. The connection then cannot be used any more."""
        future: asyncio.Future[End] = self._loop.create_future()

        def on_end(end: End) -> None:
            if not future.done():
                future.set_result(end)

        self.ask(ask, on_end)
        try:
            end = await future
        except asyncio.CancelledError:
            self._end(None)
            raise
        if isinstance(end, Failure):
            raise end
        return end

    def _overdue(self, on_overdue: Callable[[], None]) -> None:
        if self._loop.time() < self._deadline:
            on_overdue()
            self._timer = self._loop.call_at(self._deadline, self._expire)
        else:
            self._expire()

    def _expire(self) -> None:
        self._end(Failure("no answer in time"))

    def _fail(self, failure: Failure) -> None:
        is_soon = self._loop.time() - self._began < SOON_S
        if self.is_kept and not self._reader.has_begun and is_soon:
            failure = Stale(str(failure))
        self._end(failure)

    def _end(self, end: End | None) -> None:
        on_end, self._on_end = self._on_end, None
        if on_end:
            self._timer.cancel()
            if end is not None:
                on_end(end)

    # ---- called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # those of uvloop are no subclass of asyncio's
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if not self._on_end:
            self.close()  # what nobody asked
            return
        try:
            reply = self._reader.feed(data)
        except Failure as failure:
            self._fail(failure)
            return
        if reply:
            self._end(reply)

    def eof_received(self) -> None:
        self.connection_lost(None)

    def connection_lost(self, error: Exception | None) -> None:
        self.has_ended = True
        if not self._on_end:
            return
        if error:
            self._fail(Failure("the connection was reset"))
            return
        try:
            self._end(self._reader.end())
        except Failure as failure:
            self._fail(failure)


class Pool:
    """Connections of one event loop, and which of them are idle."""

    def __init__(self, identity: Identity) -> None:
        self._identity = identity
        self._idle: Idle[Line] = Idle()
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Those that are in use are closed after that."""
        if self._loop.is_closed():  # and with it, their transports
            self._idle.forget()
        else:
            self._idle.close()

    def ask_at_once(
        self, ask: Ask, on_end: Callable[[End], None]
    ) -> Line | None:
        """Over an idle connection, if there is one; on_end is called later."""
        line = self._idle.take(ask.target)
        if line:
            line.ask(ask, partial(self._ended, line, ask, on_end))
        return line

    def _ended(
        self, line: Line, ask: Ask, on_end: Callable[[End], None], end: End
    ) -> None:
        is_kept = isinstance(end, Reply) and end.is_kept and not line.has_ended
        self._idle.give_back(ask.target, line, is_kept)
        on_end(end)

    async def ask(self, ask: Ask) -> Reply:
        """Raises Failure."""
        line = self._idle.take(ask.target)
        if line:
            try:
                return await self._exchange(line, ask)
            except Stale:
                ask.is_repeated = True
        return await self._exchange(await self._open(ask), ask)

    async def _exchange(self, line: Line, ask: Ask) -> Reply:
        try:
            reply = await line.exchange(ask)
        except BaseException:
            line.close()
            raise
        is_kept = reply.is_kept and not line.has_ended
        self._idle.give_back(ask.target, line, is_kept)
        return reply

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
        target,
        target.tunnel(),
        limit_s,
        wait_s=0.0,
        overdue_s=limit_s,
        on_overdue=lambda: None,
    )
    try:
        reply = await line.exchange(ask)
    except Failure as failure:
        raise Unsent(f"the proxy: {failure}") from None
    if not 200 <= reply.status < 300:
        raise Unsent(f"the proxy refuses the connection ({reply.status})")
