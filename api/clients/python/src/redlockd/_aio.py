"""Locks for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from types import TracebackType
from typing import Any, Literal, TypeVar

from . import _log as log
from ._base import Caller, Holder, probe
from ._clock import LONGEST_SLEEP_S
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
from ._streams import Pool
from ._talk import (
    Answer,
    Hold,
    Send,
    Sleep,
    Talk,
    Wish,
    acquire,
    downgrade,
    extend,
    release,
    renew,
)
from ._wire import Failure

T = TypeVar("T")
# the event loop holds only weak references to its tasks
_tasks: set[asyncio.Task[Any]] = set()


def _start(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    task = asyncio.ensure_future(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


class AsyncClient(Caller):
    """Connections to the servers, for any number of locks of one event loop."""

    _pool: Pool | None = None

    def _prepare(self) -> None:
        self._probes: dict[str, asyncio.Task[None]] = {}
        self._replicas.probe = self._probe

    async def aclose(self) -> None:
        """Closes the connections; the next call opens new ones."""
        for task in self._probes.values():
            task.cancel()
        pool, self._pool = self._pool, None
        if pool:
            pool.close()
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

    async def _send(self, step: Send) -> Answer:
        pool = self._pool
        if pool is None or not pool.is_of_this_loop:
            pool = self._pool = Pool(self._identity)
        authorization = self._identity.authorization
        try:
            reply = await pool.ask(self._asked(step, authorization))
            if reply.status == 401 and self._identity.refresh(authorization):
                authorization = self._identity.authorization
                reply = await pool.ask(self._asked(step, authorization))
        except Failure as failure:
            return self._failure(step, failure)
        return self._answer(step, reply)

    def _probe(self, url: str) -> None:
        task = _start(self._run(probe(self._replicas, url)))
        self._probes[url] = task
        task.add_done_callback(lambda _: self._probes.pop(url, None))

    async def _run(self, talk: Talk[T]) -> T:
        try:
            step = next(talk)
            while True:
                if isinstance(step, Sleep):
                    await asyncio.sleep(step.seconds)
                    step = talk.send(None)
                else:
                    step = talk.send(await self._send(step))
        except StopIteration as end:
            result: T = end.value
            return result


class _Keeper:
    """Extends a lock, notices when it is lost, and cancels its block then. Like
    asyncio.timeout(), it distinguishes its own cancellation from one by other
    code, and passes that on."""

    def __init__(
        self,
        client: AsyncClient,
        hold: Hold,
        block: asyncio.Task[Any] | None,
        on_loss: Callable[[LockLost], None] | None,
    ) -> None:
        """block: None: there is none."""
        self._client = client
        self._hold = hold
        self._block = block
        self._on_loss = on_loss
        self._is_lost = False
        self._is_forgotten = False
        self._cancelling = block.cancelling() if block else 0
        self._loop = asyncio.get_running_loop()
        self._renewals: asyncio.Task[None] | None = None
        self._timer = self._loop.call_later(self._sleep_s, self._wake)

    @property
    def _sleep_s(self) -> float:
        sleep_s = min(self._hold.remaining_s, LONGEST_SLEEP_S)
        if self._renewals:
            return sleep_s
        return min(sleep_s, self._hold.renew_in_s)

    @property
    def is_of_closed_loop(self) -> bool:
        return self._loop.is_closed()

    def stop(self) -> None:
        """From now on the block is not cancelled."""
        self._timer.cancel()
        if self._renewals:
            self._renewals.cancel()

    def forget(self) -> None:
        """As stop(), but a moment later: a finalizer may run in any thread."""
        self._is_forgotten = True

    def _wake(self) -> None:
        """Runs beside the renewals: the loss must not wait for an answer. Most
        locks are released before the first of them."""
        if self._is_forgotten:
            self.stop()
            return
        if self._hold.remaining_s <= 0:
            self._lose(self._hold.late())
            return
        if not self._renewals and self._hold.renew_in_s <= 0:
            self._renewals = _start(self._renew())
        self._timer = self._loop.call_later(self._sleep_s, self._wake)

    async def _renew(self) -> None:
        client = self._client
        try:
            await client._run(
                renew(client._replicas, self._hold, client._timeout_s)
            )
        except LockLost as loss:
            self._lose(loss)

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


class AsyncLock(Holder):
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

    def __init__(
        self,
        *resources: str | Iterable[str],
        ttl: float | None = None,
        wait: float | None = None,
        owner: str | None = None,
        limit: int | None = None,
        permits: int = 1,
        shared: bool = False,
        urls: str | Iterable[str] | None = None,
        client: AsyncClient | None = None,
        on_loss: Callable[[LockLost], None] | None = None,
    ) -> None:
        self._wish = Wish(
            resources,
            ttl=ttl,
            wait=wait,
            owner=owner,
            limit=limit,
            permits=permits,
            shared=shared,
        )
        self._client = client or AsyncClient(urls)
        self._is_shared = client is not None
        self._on_loss = on_loss
        self._is_entered = False

    _keeper: _Keeper | None = None

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
        if loss and not isinstance(error, LockLost):
            log.warning("%s; the block raised %r", loss, error)

    async def acquire(
        self, blocking: bool = True, blocking_timeout: float | None = None
    ) -> bool:
        """Without an `async with` block: no task is cancelled if the lock is
        lost. It is extended in the background until release(), or until nobody
        refers to this object any more. False: somebody else holds it.
        blocking_timeout: seconds to wait for it, instead of `wait`."""
        wait = self._wish.wait if blocking_timeout is None else blocking_timeout
        try:
            await self._acquire(wait if blocking else 0.0, None)
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
        keeper = self._keeping()
        ttl_ms = self._extended_ms(additional_time, replace_ttl)
        client = self._client
        await self._ask(
            keeper,
            extend(client._replicas, self._held, ttl_ms, client._timeout_s),
        )
        return True

    async def downgrade(self) -> None:
        """Makes an exclusive lock a shared one: no writer gets in between. Stop
        writing before you call it: others may read before it returns. The lock
        gets another token. Raises LockLost if it is lost. There is no way
        back. If this is cancelled, the next renewal does it."""
        keeper = self._keeping()
        self.check()
        client = self._client
        await self._ask(
            keeper, downgrade(client._replicas, self._held, client._timeout_s)
        )

    def __del__(self) -> None:
        keeper = self._keeper
        if keeper and not keeper.is_of_closed_loop:
            keeper.forget()
            log.warning(
                "%s: never released, and no longer extended", self._wish.name
            )

    def _keeping(self) -> _Keeper:
        if self._keeper is None:
            raise RuntimeError(f"{self._wish.name}: not held")
        return self._keeper

    async def _ask(self, keeper: _Keeper, talk: Talk[None]) -> None:
        try:
            await self._client._run(talk)
        except LockLost as loss:
            keeper.note(loss)
            raise

    async def _acquire(
        self, wait: float | None, block: asyncio.Task[Any] | None
    ) -> None:
        if self._is_entered:
            raise RuntimeError(
                f"{self._wish.name}: held by this object already"
            )
        self._is_entered = True
        client = self._client
        talk = acquire(client._replicas, self._wish, wait, client._timeout_s)
        try:
            grant = await client._run(talk)
        except BaseException:
            await self._leave()
            raise
        self._hold = Hold(self._wish.name, grant)
        self._keeper = _Keeper(client, self._hold, block, self._on_loss)

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
        client = self._client
        loss = self._held.loss
        talk = release(
            client._replicas, self._held, client._timeout_s, is_again
        )
        goes_on = False
        try:
            await client._run(talk)
        except LockLost as gone:
            loss = loss or gone
        except asyncio.CancelledError:
            goes_on = not is_again
            if goes_on:
                _start(self._end(is_again=True))
            raise
        finally:
            if not goes_on:
                await self._leave()
        return loss

    async def _leave(self) -> None:
        self._is_entered = False
        if not self._is_shared:
            await self._client.aclose()
