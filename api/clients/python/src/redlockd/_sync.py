# SPDX-License-Identifier: MIT
"""Locks for threads."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeVar

from ._base import Caller, Holder, probe
from ._errors import LockHeld, LockLost, RedlockdError
from ._keeper import Keeper
from ._process import generation
from ._talk import Attempt, Hold, Talk
from ._threads import Courier, spawn

if TYPE_CHECKING:
    from types import TracebackType

    from ._ops import HeldLock, Unknown

T = TypeVar("T")


class Client(Caller):
    """Connections to the servers, for any number of locks and threads."""

    def _prepare(self) -> None:
        # by process: a forked child must not use our connections
        self._couriers: dict[int, Courier] = {}
        self._replicas.probe = self._probe

    def close(self) -> None:
        """Closes the connections; the next call opens new ones."""
        courier = self._couriers.pop(generation(), None)
        if courier:
            courier.close()

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
                list_page(self._replicas, prefix, cursor, self._timeout_s)
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

        return self._run(get_holder(self._replicas, resource, self._timeout_s))

    def watch(self, resource: str) -> Iterator[HeldLock | None]:
        """Who holds the lock, now and whenever it changes hands; None: nobody.
        Readers who join others, or leave some behind, are no change. It misses
        nobody who holds the lock for a second, and goes on while servers
        fail."""
        from ._ops import Unknown, next_holder  # noqa: PLC0415

        last: HeldLock | Unknown | None = Unknown.UNKNOWN
        while True:
            last = self._run(
                next_holder(self._replicas, resource, last, self._timeout_s)
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
            force_release(self._replicas, id, fencing_token, self._timeout_s)
        )

    def _courier(self) -> Courier:
        process = generation()
        courier = self._couriers.get(process)
        if courier is None:
            courier = self._couriers.setdefault(process, Courier(self))
        return courier

    def _run(self, talk: Talk[T]) -> T:
        return self._courier().run(talk)

    def _probe(self, url: str) -> None:
        try:
            spawn("redlockd probe", self._run, probe(self._replicas, url))
        except RuntimeError:  # too many threads, or at exit
            self._replicas.probed(url, False)


class Lock(Holder[Client, Keeper]):
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

    _new_client = Client
    _latest: Keeper | None = None  # of a lock that may have ended

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
        if loss:
            self._tell(loss, error)

    @property
    def lost(self) -> threading.Event:
        """Set when the lock is lost; a new one with each acquire."""
        return self._latest.lost if self._latest else self._never_lost

    @cached_property
    def _never_lost(self) -> threading.Event:
        return threading.Event()

    def acquire(
        self, blocking: bool = True, blocking_timeout: float | None = None
    ) -> bool:
        """Without a `with` block. It is extended in the background until
        release(), or until nobody refers to this object any more. False:
        somebody else holds it. blocking_timeout: seconds to wait for it,
        instead of `wait`."""
        try:
            self._acquire(self._wait_s(blocking, blocking_timeout))
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
            return client._run(talk)
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
        self._ask(keeper, self._extending(additional_time, replace_ttl))
        return True

    def downgrade(self) -> None:
        """Makes an exclusive lock a shared one: no writer gets in between. Stop
        writing before you call it: others may read before it returns. The lock
        gets another token. Raises LockLost if it is lost. There is no way
        back. If this is interrupted, the next renewal does it."""
        self._ask(self._keeping(), self._downgrading())

    def _keeping(self) -> Keeper:
        keeper = super()._keeping()
        # a forked child has a copy of the lock, which is not its own
        if keeper.has_gone:
            raise RuntimeError(f"{self._wish.name}: not held")
        return keeper

    def _ask(self, keeper: Keeper, talk: Talk[object]) -> None:
        try:
            self._client._run(talk)
        except LockLost as loss:
            keeper.lose(loss)
            raise

    def _acquire(self, wait: float | None) -> None:
        self._enter()
        courier = self._client._courier()
        attempt = Attempt()
        try:
            grant = courier.run(self._acquiring(wait, attempt))
            hold = self._hold = Hold(self._wish, grant)
            self._keeper = self._latest = Keeper(
                hold, self._client, self._renewing(hold), self._on_loss
            )
        except BaseException as error:
            try:
                if not isinstance(error, RedlockdError):  # interrupted
                    keeper, self._keeper = self._keeper, None
                    if keeper:
                        keeper.stop()
                    courier.give_back(attempt)
            finally:
                self._leave()
            raise

    def _release(self) -> LockLost | None:
        """Also of a lost lock: some of its resources may still be locked."""
        keeper, self._keeper = self._keeper, None
        if keeper is None or keeper.has_gone:
            self._is_entered = False
            return None
        courier = self._client._courier()
        loss = None
        try:
            keeper.stop()
            loss = self._held.find_loss()
            courier.run(self._releasing())
        except LockLost as gone:
            loss = loss or gone
        except BaseException as error:
            if not isinstance(error, RedlockdError):  # interrupted
                talk = self._releasing(is_again=True)
                courier.finish(courier.run, talk)
            raise
        finally:
            self._leave()
        return loss

    def _leave(self) -> None:
        self._is_entered = False
        if not self._is_shared:
            self._client.close()
