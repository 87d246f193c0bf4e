"""Locks for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any, Literal, TypeVar

import httpx

from ._base import LIMITS, Caller, Holder
from ._clock import LONGEST_SLEEP_S
from ._errors import LockLost
from ._ops import (
    HeldLock,
    Unknown,
    force_release,
    list_page,
    next_holder,
)
from ._talk import (
    Answer,
    Hold,
    Send,
    Sleep,
    Talk,
    Wish,
    acquire,
    downgrade,
    log,
    release,
    renew,
)

T = TypeVar("T")
# the event loop holds only weak references to its tasks
_releases: set[asyncio.Task[Any]] = set()


class AsyncClient(Caller):
    """Connections to the servers, for any number of locks of one event loop."""

    _pool: httpx.AsyncClient | None = None

    async def aclose(self) -> None:
        """Closes the connections; the next call opens new ones."""
        pool, self._pool = self._pool, None
        if pool:
            await pool.aclose()

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

    async def _send(self, step: Send) -> Answer | None:
        if self._pool is None:
            self._pool = httpx.AsyncClient(
                limits=LIMITS,
                verify=self._identity.context,
                mounts=self._direct(),
            )
        pool = self._pool
        try:
            response = await pool.send(self._request(pool, step))
            if self._is_other_identity(response):
                response = await pool.send(self._request(pool, step))
        except httpx.HTTPError as error:
            return self._failure(step, error)
        return self._answer(response)

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
    """Watches the validity of a lock, extends it, and cancels its block if it
    is lost. Like asyncio.timeout(), it distinguishes its own cancellation from
    one by other code, and passes that on."""

    def __init__(self, client: AsyncClient, hold: Hold) -> None:
        self._client = client
        self._hold = hold
        task = asyncio.current_task()
        assert task
        self._block = task
        self._has_cancelled = False
        self._cancelling = task.cancelling()
        self._tasks = [
            asyncio.ensure_future(self._watch()),
            asyncio.ensure_future(self._renew()),
        ]

    def stop(self) -> None:
        """From now on the block is not cancelled."""
        for task in self._tasks:
            task.cancel()

    async def _watch(self) -> None:
        """Runs beside the renewals: the loss must not wait for an answer."""
        while self._hold.remaining_s > 0:
            sleep_s = min(self._hold.remaining_s, LONGEST_SLEEP_S)
            await asyncio.sleep(sleep_s)
        self._lose(LockLost(f"{self._hold.name}: the lock's validity ended"))

    async def _renew(self) -> None:
        client = self._client
        await asyncio.sleep(self._hold.renew_in_s)
        try:
            await client._run(
                renew(client._replicas, self._hold, client._timeout_s)
            )
        except LockLost as loss:
            self._lose(loss)

    def _lose(self, loss: LockLost) -> None:
        if self._has_cancelled:
            return
        self._hold.loss = self._hold.loss or loss
        self._has_cancelled = True
        self._block.cancel()

    def note(self, loss: LockLost) -> None:
        """The block need not be cancelled if it is about to raise the loss."""
        if asyncio.current_task() is self._block:
            self._hold.loss = self._hold.loss or loss
        else:
            self._lose(loss)

    def has_ended_block(self, error: BaseException | None) -> bool:
        """Whether the block ended only because we cancelled it."""
        if not self._has_cancelled:
            return False
        if self._block.uncancel() > self._cancelling:
            return False
        return isinstance(error, asyncio.CancelledError)


class AsyncLock(Holder):
    """A lock for an `async with` block, which keeps it until the block is left.

    ttl: seconds; the server's default if None. wait: seconds to wait for the
    lock, and for a server; None: without a limit. owner: shown to clients that
    find the lock held. limit: so many may hold the resource at once, each with
    a slot of its own; permits: how many slots to take. shared: as a reader;
    others hold the lock, too, if they are readers. client: its connections are
    shared between locks.

    If the lock is lost, the block is cancelled, and leaving it raises LockLost.
    """

    def __init__(
        self,
        *resources: str,
        ttl: float | None = None,
        wait: float | None = None,
        owner: str | None = None,
        limit: int | None = None,
        permits: int = 1,
        shared: bool = False,
        urls: str | Iterable[str] | None = None,
        client: AsyncClient | None = None,
    ) -> None:
        self._wish = Wish(resources, ttl, wait, owner, limit, permits, shared)
        self._client = client or AsyncClient(urls)
        self._is_shared = client is not None
        self._keeper: _Keeper | None = None
        self._is_entered = False

    async def __aenter__(self) -> AsyncLock:
        if self._is_entered:
            raise RuntimeError(
                f"{self._wish.name}: held by this object already"
            )
        self._is_entered = True
        client = self._client
        talk = acquire(client._replicas, self._wish, client._timeout_s)
        try:
            grant = await client._run(talk)
        except BaseException:
            await self._leave()
            raise
        self._hold = Hold(self._wish.name, grant)
        self._keeper = _Keeper(client, self._hold)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        keeper, self._keeper = self._keeper, None
        assert keeper
        keeper.stop()
        self._held.find_loss()
        is_ours = keeper.has_ended_block(error)
        # a later cancellation does not delay the release
        ending = asyncio.ensure_future(self._end())
        _releases.add(ending)
        ending.add_done_callback(_releases.discard)
        loss = await asyncio.shield(ending)
        if loss and (error is None or is_ours):
            raise loss
        if loss and not isinstance(error, LockLost):
            log.warning("%s; the block raised %r", loss, error)

    async def downgrade(self) -> None:
        """Makes an exclusive lock a shared one: no writer gets in between. Stop
        writing before you call it: others may read before it returns. The lock
        gets another token. Raises LockLost if it is lost. There is no way
        back. If this is cancelled, the next renewal does it."""
        keeper = self._keeper
        if keeper is None:
            raise RuntimeError(f"{self._wish.name}: not held")
        self.check()
        client = self._client
        talk = downgrade(client._replicas, self._held, client._timeout_s)
        try:
            await client._run(talk)
        except LockLost as loss:
            keeper.note(loss)
            raise

    async def _end(self) -> LockLost | None:
        """Also releases a lost lock: some of its resources may still be
        locked."""
        client = self._client
        loss = self._held.loss
        try:
            await client._run(
                release(client._replicas, self._held, client._timeout_s)
            )
        except LockLost as gone:
            loss = loss or gone
        finally:
            await self._leave()
        return loss

    async def _leave(self) -> None:
        self._is_entered = False
        if not self._is_shared:
            await self._client.aclose()
