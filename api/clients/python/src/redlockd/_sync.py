"""Locks for threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Literal, TypeVar

from . import _log as log
from ._base import Caller, Holder, probe
from ._errors import LockHeld, LockLost
from ._keeper import Keeper
from ._sockets import Pool
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

if TYPE_CHECKING:
    from types import TracebackType

    from ._ops import HeldLock, Unknown

T = TypeVar("T")


class Client(Caller):
    """Connections to the servers, for any number of locks and threads."""

    def _prepare(self) -> None:
        # by process: a forked child must not use our connections
        self._pools: dict[int, Pool] = {}
        self._replicas.probe = self._probe

    def close(self) -> None:
        """Closes the connections; the next call opens new ones."""
        pool = self._pools.pop(os.getpid(), None)
        if pool:
            pool.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def locks(self, prefix: str = "") -> Iterator[HeldLock]:
        """The locks that are held, with resources that begin with prefix. A
        lock that is granted or ends meanwhile may be listed or not."""
        from ._ops import list_page  # noqa: PLC0415 - locks do without

        seen: set[str] = set()  # a lock may be on two pages
        cursor = ""
        while True:
            page = self._run(
                list_page(self._replicas, prefix, cursor, self._timeout_s),
                time.sleep,
            )
            for lock in page.locks:
                if lock.id not in seen:
                    seen.add(lock.id)
                    yield lock
            cursor = page.cursor
            if not cursor:
                return

    def get(self, resource: str) -> HeldLock | None:
        """Who holds the lock; None: nobody."""
        from ._ops import get_holder  # noqa: PLC0415

        return self._run(
            get_holder(self._replicas, resource, self._timeout_s), time.sleep
        )

    def watch(self, resource: str) -> Iterator[HeldLock | None]:
        """Who holds the lock, now and whenever it changes hands; None: nobody.
        Readers who join others, or leave some behind, are no change. It misses
        nobody who holds the lock for a second, and goes on while servers
        fail."""
        from ._ops import Unknown, next_holder  # noqa: PLC0415

        last: HeldLock | Unknown | None = Unknown.UNKNOWN
        while True:
            last = self._run(
                next_holder(self._replicas, resource, last, self._timeout_s),
                time.sleep,
            )
            yield last

    def force_release(
        self, id: str, fencing_token: int | Literal["all"]
    ) -> bool:
        """Releases the lock of a dead holder; locks() has its id and its
        fencing_token. "all": the locks of all readers. The holder is not told.
        False: no lock with this fencing token, or of a reader, is held
        (any more)."""
        from ._ops import force_release  # noqa: PLC0415

        return self._run(
            force_release(self._replicas, id, fencing_token, self._timeout_s),
            time.sleep,
        )

    def _pool(self) -> Pool:
        pool = self._pools.get(os.getpid())
        if pool is None:
            new = Pool(self._identity)
            pool = self._pools.setdefault(os.getpid(), new)
        return pool

    def _send(self, step: Send) -> Answer:
        pool = self._pool()
        authorization = self._identity.authorization
        try:
            reply = pool.ask(self._asked(step, authorization))
            if reply.status == 401 and self._identity.refresh(authorization):
                authorization = self._identity.authorization
                reply = pool.ask(self._asked(step, authorization))
        except Failure as failure:
            return self._failure(step, failure)
        return self._answer(step, reply)

    def _probe(self, url: str) -> None:
        thread = threading.Thread(
            target=self._run,
            args=(probe(self._replicas, url), time.sleep),
            name="redlockd probe",
            daemon=True,
        )
        try:
            thread.start()
        except RuntimeError:  # too many threads, or at exit
            self._replicas.avoid(url)

    def _run(self, talk: Talk[T], sleep: Callable[[float], None]) -> T:
        try:
            step = next(talk)
            while True:
                if isinstance(step, Sleep):
                    sleep(step.seconds)
                    step = talk.send(None)
                else:
                    step = talk.send(self._send(step))
        except StopIteration as end:
            result: T = end.value
            return result


class Lock(Holder):
    """A lock for a `with` block, which keeps it until the block is left; or for
    acquire() and release().

    ttl: seconds; the server's default if None. wait: seconds to wait for the
    lock, and for a server; None: without a limit. owner: shown to clients that
    find the lock held. limit: so many may hold the resource at once, each with
    a slot of its own; permits: how many slots to take. shared: as a reader;
    others hold the lock, too, if they are readers. on_loss: called from another
    thread if the lock is lost, with the LockLost. client: its connections are
    shared between locks.

    Leaving the block raises LockLost if the lock was lost within it, unless the
    block raised something itself. The same object may be used again, but not
    by two threads at once.
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
        client: Client | None = None,
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
        self._client = client or Client(urls)
        self._is_shared = client is not None
        self._on_loss = on_loss
        self._pid = 0
        self._is_entered = False
        self.lost = threading.Event()
        """Set when the lock is lost; a new one with each acquire."""

    _keeper: Keeper | None = None

    def __enter__(self) -> Lock:
        self._acquire(self._wish.wait)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        loss = self._release()
        if loss and error is None:
            raise loss
        if loss and not isinstance(error, LockLost):
            log.warning("%s; the block raised %r", loss, error)

    def acquire(
        self, blocking: bool = True, blocking_timeout: float | None = None
    ) -> bool:
        """Without a `with` block. It is extended in the background until
        release(), or until nobody refers to this object any more. False:
        somebody else holds it. blocking_timeout: seconds to wait for it,
        instead of `wait`."""
        wait = self._wish.wait if blocking_timeout is None else blocking_timeout
        try:
            self._acquire(wait if blocking else 0.0)
        except LockHeld:
            return False
        return True

    def release(self) -> None:
        """Lets others have the lock. Raises LockLost if it was lost before."""
        self._keeping()
        loss = self._release()
        if loss:
            raise loss

    def locked(self) -> bool:
        """Whether anybody holds it: of several resources, one of them; with a
        limit, so many that the permits cannot be had."""
        from ._ops import is_locked  # noqa: PLC0415 - most locks do without

        client = self._client
        talk = is_locked(client._replicas, self._wish, client._timeout_s)
        try:
            return client._run(talk, time.sleep)
        finally:
            if not self._is_entered:
                self._leave()

    def owned(self) -> bool:
        """Whether this object holds it. The servers are not asked."""
        return self._hold is not None and self._hold.remaining_s > 0

    def extend(self, additional_time: float, replace_ttl: bool = False) -> bool:
        """Extends it by so many seconds; with replace_ttl, to so many from now
        on. Renewals in the background then extend it to as much each time.
        Raises LockLost if it is lost, and RequestRefused if it cannot be
        extended, else returns True."""
        keeper = self._keeping()
        ttl_ms = self._extended_ms(additional_time, replace_ttl)
        client = self._client
        self._ask(
            keeper,
            extend(client._replicas, self._held, ttl_ms, client._timeout_s),
        )
        return True

    def downgrade(self) -> None:
        """Makes an exclusive lock a shared one: no writer gets in between. Stop
        writing before you call it: others may read before it returns. The lock
        gets another token. Raises LockLost if it is lost. There is no way
        back. If this is interrupted, the next renewal does it."""
        keeper = self._keeping()
        self.check()
        client = self._client
        self._ask(
            keeper, downgrade(client._replicas, self._held, client._timeout_s)
        )

    def __del__(self) -> None:
        keeper = self._keeper
        if keeper and os.getpid() == self._pid:
            keeper.forget()
            log.warning(
                "%s: never released, and no longer extended", self._wish.name
            )

    def _keeping(self) -> Keeper:
        # a forked child has a copy of the lock, which is not its own
        if self._keeper is None or os.getpid() != self._pid:
            raise RuntimeError(f"{self._wish.name}: not held")
        return self._keeper

    def _ask(self, keeper: Keeper, talk: Talk[None]) -> None:
        try:
            self._client._run(talk, time.sleep)
        except LockLost as loss:
            keeper.lose(loss)
            raise

    def _acquire(self, wait: float | None) -> None:
        if self._is_entered:
            raise RuntimeError(
                f"{self._wish.name}: held by this object already"
            )
        self._is_entered = True
        client = self._client
        replicas, timeout_s = client._replicas, client._timeout_s
        talk = acquire(replicas, self._wish, wait, timeout_s)
        try:
            grant = client._run(talk, time.sleep)
            hold = self._hold = Hold(self._wish.name, grant)
            self._keeper = Keeper(
                hold,
                client._run,
                renew(replicas, hold, timeout_s),
                self._on_loss,
            )
        except BaseException:
            self._leave()
            raise
        self.lost = self._keeper.lost
        self._pid = os.getpid()

    def _release(self) -> LockLost | None:
        """Also of a lost lock: some of its resources may still be locked."""
        keeper, self._keeper = self._keeper, None
        if keeper is None or os.getpid() != self._pid:
            self._is_entered = False
            return None
        keeper.stop()
        client = self._client
        hold = self._held
        loss = hold.find_loss()
        try:
            client._run(
                release(client._replicas, hold, client._timeout_s), time.sleep
            )
        except LockLost as gone:
            loss = loss or gone
        finally:
            self._leave()
        return loss

    def _leave(self) -> None:
        self._is_entered = False
        if not self._is_shared:
            self._client.close()
