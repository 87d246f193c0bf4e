"""Locks for threads."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Literal, TypeVar

import httpx

from ._base import LIMITS, Caller, Holder
from ._clock import LONGEST_SLEEP_S, now
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


class Client(Caller):
    """Connections to the servers, for any number of locks and threads."""

    def _prepare(self) -> None:
        # by process: a forked child must not use our connections
        self._pools: dict[int, httpx.Client] = {}

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

    def watch(self, resource: str) -> Iterator[HeldLock | None]:
        """Who holds the lock, now and whenever it changes hands; None: nobody.
        Readers who join others, or leave some behind, are no change. It misses
        nobody who holds the lock for a second, and goes on while servers
        fail."""
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
        return self._run(
            force_release(self._replicas, id, fencing_token, self._timeout_s),
            time.sleep,
        )

    def _pool(self) -> httpx.Client:
        pool = self._pools.get(os.getpid())
        if pool is None:
            new = httpx.Client(
                limits=LIMITS,
                verify=self._identity.context,
                mounts=self._direct(),
            )
            pool = self._pools.setdefault(os.getpid(), new)
        return pool

    def _send(self, step: Send) -> Answer | None:
        pool = self._pool()
        try:
            response = pool.send(self._request(pool, step))
            if self._is_other_identity(response):
                response = pool.send(self._request(pool, step))
        except httpx.HTTPError as error:
            return self._failure(step, error)
        return self._answer(response)

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


class _Stopped(Exception):
    """The lock is being released: no more renewals."""


class _Keeper:
    """Watches the validity of a lock, and extends it, in the background."""

    def __init__(
        self,
        client: Client,
        hold: Hold,
        on_loss: Callable[[LockLost], None] | None,
    ) -> None:
        self._client = client
        self._hold = hold
        self._on_loss = on_loss
        self._mutex = threading.Lock()
        self._ended = threading.Event()  # lost or stopped
        self.lost = threading.Event()
        self._spawn(self._watch)

    def stop(self) -> None:
        """From now on the lock cannot be lost."""
        with self._mutex:
            self._ended.set()

    def _spawn(self, work: Callable[[], None]) -> None:
        name = f"redlockd {self._hold.name}"
        threading.Thread(target=work, name=name, daemon=True).start()

    def _watch(self) -> None:
        """Runs until the validity ends. Renewals have a thread of their own:
        the loss must not wait for an answer or for a name server. That thread
        starts at the first renewal: most locks are released before."""
        renew_at = self._hold.grant.renew_at
        is_renewing = False
        while self._hold.remaining_s > 0:
            sleep_s = min(self._hold.remaining_s, LONGEST_SLEEP_S)
            if not is_renewing:
                sleep_s = min(sleep_s, max(renew_at - now(), 0.0))
            if self._ended.wait(sleep_s):
                return
            if not is_renewing and now() >= renew_at:
                is_renewing = True
                self._spawn(self._renew)
        self._lose(LockLost(f"{self._hold.name}: the lock's validity ended"))

    def _renew(self) -> None:
        client = self._client
        talk = renew(client._replicas, self._hold, client._timeout_s)
        try:
            client._run(talk, self._sleep)
        except LockLost as loss:
            self._lose(loss)
        except _Stopped:
            pass
        except RuntimeError:
            if not self._ended.is_set():  # else its client was closed
                raise

    def _sleep(self, seconds: float) -> None:
        if self._ended.wait(seconds):
            raise _Stopped

    def _lose(self, loss: LockLost) -> None:
        with self._mutex:
            if self._ended.is_set():
                return
            # check() may have found it first
            loss = self._hold.loss = self._hold.loss or loss
            self._ended.set()
        self.lost.set()
        if self._on_loss:
            self._on_loss(loss)


class Lock(Holder):
    """A lock for a `with` block, which keeps it until the block is left.

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
        *resources: str,
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
        self._wish = Wish(resources, ttl, wait, owner, limit, permits, shared)
        self._client = client or Client(urls)
        self._is_shared = client is not None
        self._on_loss = on_loss
        self._keeper: _Keeper | None = None
        self._pid = 0
        self._is_entered = False
        self.lost = threading.Event()
        """Set when the lock is lost; a new one with each `with`."""

    def __enter__(self) -> Lock:
        if self._is_entered:
            raise RuntimeError(
                f"{self._wish.name}: held by this object already"
            )
        self._is_entered = True
        client = self._client
        talk = acquire(client._replicas, self._wish, client._timeout_s)
        try:
            grant = client._run(talk, time.sleep)
            self._hold = Hold(self._wish.name, grant)
            self._keeper = _Keeper(client, self._hold, self._on_loss)
        except BaseException:
            self._leave()
            raise
        self.lost = self._keeper.lost
        self._pid = os.getpid()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        keeper, self._keeper = self._keeper, None
        # a forked child has a copy of the lock, which is not its own
        if keeper is None or os.getpid() != self._pid:
            self._is_entered = False
            return
        keeper.stop()
        loss = self._held.find_loss()
        try:
            self._release()
        except LockLost as gone:
            loss = loss or gone
        finally:
            self._leave()
        if loss and error is None:
            raise loss
        if loss and not isinstance(error, LockLost):
            log.warning("%s; the block raised %r", loss, error)

    def downgrade(self) -> None:
        """Makes an exclusive lock a shared one: no writer gets in between. Stop
        writing before you call it: others may read before it returns. The lock
        gets another token. Raises LockLost if it is lost. There is no way
        back. If this is interrupted, the next renewal does it."""
        keeper = self._keeper
        if keeper is None or os.getpid() != self._pid:
            raise RuntimeError(f"{self._wish.name}: not held")
        self.check()
        client = self._client
        talk = downgrade(client._replicas, self._held, client._timeout_s)
        try:
            client._run(talk, time.sleep)
        except LockLost as loss:
            keeper._lose(loss)
            raise

    def _release(self) -> None:
        """Also for a lost lock: some of its resources may still be locked."""
        client = self._client
        talk = release(client._replicas, self._held, client._timeout_s)
        client._run(talk, time.sleep)

    def _leave(self) -> None:
        self._is_entered = False
        if not self._is_shared:
            self._client.close()
