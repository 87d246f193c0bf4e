# SPDX-License-Identifier: MIT
"""Locks for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from types import TracebackType
from typing import Any, Literal, TypeVar

from ._base import Caller, Holder, probe
from ._clock import now
from ._errors import LockHeld, LockLost
from ._ops import (
    HeldLock,
    Unknown,
    force_release,
    get_holder,
    is_locked,
    list_page,
    next_holder,
)
from ._talk import Attempt, Hold, Talk
from ._tasks import Courier, Woken, start

T = TypeVar("T")


class AsyncClient(Caller):
    """Connections to the servers, for any number of locks of one event loop."""

    _carrier: Courier | None = None

    def _prepare(self) -> None:
        self._probes: dict[str, asyncio.Task[None]] = {}
        self._replicas.probe = self._probe

    async def aclose(self) -> None:
        """Closes the connections; the next call opens new ones."""
        for task in self._probes.values():
            task.cancel()
        carrier, self._carrier = self._carrier, None
        if carrier:
            carrier.close()
            await asyncio.sleep(0)  # the loop closes the sockets

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def locks(self, prefix: str = "") -> AsyncIterator[HeldLock]:
        """The locks that are held, with resources that begin with prefix. A
        lock that is granted or ends meanwhile may be listed or not."""
        seen: set[str] = set()  # a lock may be on two pages
        cursor = ""
        while True:
            page = await self._run(
                list_page(self._replicas, prefix, cursor, self._timeout_s)
            )
            for lock in page.locks:
                if lock.id not in seen:
                    seen.add(lock.id)
                    yield lock
            cursor = page.cursor
            if not cursor:
                return

    async def get(self, resource: str) -> HeldLock | None:
        """Who holds the lock; None: nobody."""
        return await self._run(
            get_holder(self._replicas, resource, self._timeout_s)
        )

    async def watch(self, resource: str) -> AsyncIterator[HeldLock | None]:
        """Who holds the lock, now and whenever it changes hands; None: nobody.
        Readers who join others, or leave some behind, are no change. It misses
        nobody who holds the lock for a second, and goes on while servers
        fail."""
        last: HeldLock | Unknown | None = Unknown.UNKNOWN
        while True:
            last = await self._run(
                next_holder(self._replicas, resource, last, self._timeout_s)
            )
            yield last

    async def force_release(
        self, id: str, fencing_token: int | Literal["all"]
    ) -> bool:
        """Releases the lock of a dead holder; locks() has its id and its
        fencing_token. "all": the locks of all readers. The holder is not told.
        False: no lock with this fencing token, or of a reader, is held
        (any more)."""
        return await self._run(
            force_release(self._replicas, id, fencing_token, self._timeout_s)
        )

    def _courier(self) -> Courier:
        carrier = self._carrier
        if carrier is None or carrier.loop is not asyncio.get_running_loop():
            carrier = self._carrier = Courier(self)
        return carrier

    def _probe(self, url: str) -> None:
        task = start(self._run(probe(self._replicas, url)))
        self._probes[url] = task
        task.add_done_callback(lambda _: self._probes.pop(url, None))

    def _run(self, talk: Talk[T]) -> Coroutine[Any, Any, T]:
        return self._courier().run(talk)


class _Keeper(Woken):
    """Extends a lock, notices when it is lost, and cancels its block then. Like
    asyncio.timeout(), it distinguishes its own cancellation from one by other
    code, and passes that on."""

    def __init__(
        self,
        client: AsyncClient,
        hold: Hold,
        talk: Callable[[], Talk[bool]],
        block: asyncio.Task[Any] | None,
        on_loss: Callable[[LockLost], None] | None,
    ) -> None:
        """talk: begins a renewal. block: None: there is none."""
        super().__init__(hold)
        self._client = client
        self._begin = talk
        self._block = block
        self._on_loss = on_loss
        self._is_stopped = self._is_lost = False
        self._cancelling = block.cancelling() if block else 0
        courier = client._courier()
        self._loop = courier.loop
        self._renewal: asyncio.Task[None] | None = None
        self._clock = courier.clock
        self._clock.add(self)

    @property
    def has_ended(self) -> bool:
        return self._is_stopped or self._is_lost or self._is_forgotten

    @property
    def has_gone(self) -> bool:
        return self._loop.is_closed()

    def stop(self) -> None:
        """From now on the block is not cancelled."""
        self._is_stopped = True
        self._clock.ended()
        if self._renewal:
            self._renewal.cancel()

    def wake(self) -> bool:
        """Whether to look at it again. The renewal is a task of its own: the
        loss must not wait for an answer. Most locks are released before."""
        if self.is_late:
            self._lose(self._hold.late())
            return False
        if self.may_renew(now()):
            self.is_renewing = True
            self._renewal = start(self._renew())
        return True

    async def _renew(self) -> None:
        try:
            # else it cannot be extended any more
            self.is_renewing = not await self._client._run(self._begin())
        except LockLost as loss:
            self._lose(loss)
        self._renewal = None
        if not self.has_ended:
            self._clock.add(self)

    def _lose(self, loss: LockLost) -> None:
        if self._is_lost:
            return
        loss = self._hold.loss = self._hold.loss or loss
        self._is_lost = True
        if self._block:
            self._block.cancel()
        if self._on_loss:
            self._loop.call_soon(self._on_loss, loss)

    def note(self, loss: LockLost) -> None:
        """The block need not be cancelled if it is about to raise the loss."""
        if self._block and asyncio.current_task() is self._block:
            self._hold.loss = self._hold.loss or loss
        else:
            self._lose(loss)

    def has_ended_block(self, error: BaseException | None) -> bool:
        """Whether the block ended only because we cancelled it."""
        if not self._is_lost or not self._block:
            return False
        if self._block.uncancel() > self._cancelling:
            return False
        return isinstance(error, asyncio.CancelledError)


class AsyncLock(Holder[AsyncClient, _Keeper]):
    """A lock for an `async with` block, which keeps it until the block is left;
    or for acquire() and release().

    ttl: seconds; the server's default if None. wait: seconds to wait for the
    lock, and for a server; None: without a limit. owner: shown to clients that
    find the lock held. limit: so many may hold the resource at once, each with
    a slot of its own; permits: how many slots to take. shared: as a reader;
    others hold the lock, too, if they are readers. on_loss: called if the lock
    is lost, with the LockLost. client: its connections are shared between
    locks.

    If the lock is lost, the block is cancelled, and leaving it raises LockLost.
    """

    _new_client = AsyncClient

    async def __aenter__(self) -> AsyncLock:
        await self._acquire(self._wish.wait, asyncio.current_task())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        keeper = self._keeping()
        loss, is_ours = await self._release(keeper, error)
        if loss and (error is None or is_ours):
            raise loss
        if loss:
            self._tell(loss, error)

    async def acquire(
        self, blocking: bool = True, blocking_timeout: float | None = None
    ) -> bool:
        """Without an `async with` block: no task is cancelled if the lock is
        lost. It is extended in the background until release(), or until nobody
        refers to this object any more. False: somebody else holds it.
        blocking_timeout: seconds to wait for it, instead of `wait`."""
        try:
            await self._acquire(self._wait_s(blocking, blocking_timeout), None)
        except LockHeld:
            return False
        return True

    async def release(self) -> None:
        """Lets others have the lock. Raises LockLost if it was lost before."""
        loss, _ = await self._release(self._keeping(), None)
        if loss:
            raise loss

    async def locked(self) -> bool:
        """Whether anybody holds it: of several resources, one of them; with a
        limit, so many that the permits cannot be had."""
        client = self._client
        talk = is_locked(client._replicas, self._wish, client._timeout_s)
        try:
            return await client._run(talk)
        finally:
            if not self._is_entered:
                await self._leave()

    async def owned(self) -> bool:
        """Whether this object holds it. The servers are not asked."""
        return self._hold is not None and self._hold.remaining_s > 0

    async def extend(
        self, additional_time: float, replace_ttl: bool = False
    ) -> bool:
        """Extends it by so many seconds; with replace_ttl, to so many from now
        on. Renewals in the background then extend it to as much each time.
        Raises LockLost if it is lost, and RequestRefused if it cannot be
        extended, else returns True."""
        await self._ask(
            self._keeping(), self._extending(additional_time, replace_ttl)
        )
        return True

    async def downgrade(self) -> None:
        """Makes an exclusive lock a shared one: no writer gets in between. Stop
        writing before you call it: others may read before it returns. The lock
        gets another token. Raises LockLost if it is lost. There is no way
        back. If this is cancelled, the next renewal does it."""
        await self._ask(self._keeping(), self._downgrading())

    async def _ask(self, keeper: _Keeper, talk: Talk[object]) -> None:
        try:
            await self._client._run(talk)
        except LockLost as loss:
            keeper.note(loss)
            raise

    async def _acquire(
        self, wait: float | None, block: asyncio.Task[Any] | None
    ) -> None:
        self._enter()
        client = self._client
        courier = client._courier()
        attempt = Attempt()
        try:
            grant = await courier.run(self._acquiring(wait, attempt))
        except BaseException as error:
            try:
                if isinstance(error, asyncio.CancelledError):
                    courier.give_back(attempt)
                    await courier.finish_giving_back()
            finally:
                await self._leave()
            raise
        hold = self._hold = Hold(self._wish, grant)
        self._keeper = _Keeper(
            client, hold, self._renewing(hold), block, self._on_loss
        )

    async def _release(
        self, keeper: _Keeper, error: BaseException | None
    ) -> tuple[LockLost | None, bool]:
        """Whether it was lost, and whether the block ended because of that."""
        self._keeper = None
        keeper.stop()
        self._held.find_loss()
        is_ours = keeper.has_ended_block(error)
        return await self._end(), is_ours

    async def _end(self, is_again: bool = False) -> LockLost | None:
        """Also releases a lost lock: some of its resources may still be
        locked. Whoever cancels it does not wait: it is done in the
        background, once."""
        loss = self._held.loss
        goes_on = False
        try:
            await self._client._run(self._releasing(is_again))
        except LockLost as gone:
            loss = loss or gone
        except asyncio.CancelledError:
            goes_on = not is_again
            if goes_on:
                start(self._end(is_again=True))
            raise
        finally:
            if not goes_on:
                await self._leave()
        return loss

    async def _leave(self) -> None:
        self._is_entered = False
        if not self._is_shared:
            await self._client.aclose()
