"""Keeps the locks of threads while they are held."""

from __future__ import annotations

import heapq
import itertools
import os
import sys
import threading
from collections.abc import Callable
from typing import Any

from . import _log as log
from ._clock import LONGEST_SLEEP_S, now
from ._errors import LockLost
from ._talk import Hold, Talk

FEW = 100  # keepers that have stopped may stay on the clock


class _Clock:
    """One thread that wakes the keepers of this process, each at its moment."""

    def __init__(self) -> None:
        self._mutex = threading.Condition()
        self._heap: list[tuple[float, int, Keeper]] = []
        self._numbers = itertools.count()
        self._stopped = 0
        self._next = 0.0  # when the thread looks again
        self._is_running = False

    def add(self, moment: float, keeper: Keeper) -> None:
        with self._mutex:
            self._push(moment, keeper)
            if not self._is_running:
                _spawn("redlockd clock", self._run)
                self._is_running = True
            elif moment < self._next:
                self._mutex.notify()

    def stopped(self) -> None:
        with self._mutex:
            self._stopped += 1
            if self._stopped > max(FEW, len(self._heap) // 2):
                self._heap = [one for one in self._heap if not one[2].has_ended]
                heapq.heapify(self._heap)
                self._stopped = 0

    def _push(self, moment: float, keeper: Keeper) -> None:
        heapq.heappush(self._heap, (moment, next(self._numbers), keeper))

    def _run(self) -> None:
        """For ever: it is cheaper to wait than to start again."""
        while True:
            with self._mutex:
                time = now()
                self._next = self._heap[0][0] if self._heap else float("inf")
                if self._next > time:
                    sleep_s = min(self._next - time, LONGEST_SLEEP_S)
                    self._mutex.wait(sleep_s if self._heap else None)
                    continue
                keeper = heapq.heappop(self._heap)[2]
            try:
                moment = keeper.wake()
            except RuntimeError as error:  # too many threads, or at exit
                log.warning("%s: not watched any more (%s)", keeper, error)
                continue
            if moment is not None:
                with self._mutex:
                    self._push(moment, keeper)


_clock = _Clock()


def _forked() -> None:
    global _clock  # noqa: PLW0603 - the thread stayed with the parent
    _clock = _Clock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)


def _spawn(name: str, work: Callable[..., None], *words: Any) -> None:
    threading.Thread(target=work, name=name, args=words, daemon=True).start()


class _Stopped(Exception):
    """The lock is being released: no more renewals."""


class Keeper:
    """Extends a lock, and notices when it is lost. Renewals have a thread of
    their own: the loss must not wait for an answer or for a name server. Most
    locks are released before the first renewal."""

    def __init__(
        self,
        hold: Hold,
        run: Callable[[Talk[None], Callable[[float], None]], None],
        talk: Talk[None],
        on_loss: Callable[[LockLost], None] | None,
    ) -> None:
        """talk: the renewals; run() does what it asks for."""
        self._hold = hold
        self._run = run
        self._talk = talk
        self._on_loss = on_loss
        self._mutex = threading.Lock()
        self._ended = threading.Event()  # lost or stopped
        self._is_renewing = False
        self._is_forgotten = False
        self.lost = threading.Event()
        _clock.add(self._moment, self)

    @property
    def has_ended(self) -> bool:
        return self._ended.is_set()

    @property
    def _moment(self) -> float:
        grant = self._hold.grant
        if self._is_renewing:
            return grant.work_until
        return min(grant.renew_at, grant.work_until)

    def stop(self) -> None:
        """From now on the lock cannot be lost."""
        with self._mutex:
            self._ended.set()
        _clock.stopped()

    def forget(self) -> None:
        """As stop(), but a moment later. It takes no mutex: a finalizer may run
        in the middle of any other function here."""
        self._is_forgotten = True

    def __repr__(self) -> str:
        return self._hold.name

    def wake(self) -> float | None:
        """When to look again, if at all."""
        if self._ended.is_set() or self._is_forgotten:
            return None
        if self._hold.remaining_s <= 0:
            self.lose(self._hold.late())
            return None
        if not self._is_renewing and now() >= self._hold.grant.renew_at:
            self._is_renewing = True
            try:
                _spawn(f"redlockd {self._hold.name}", self._renew)
            except RuntimeError as error:  # as in _Clock
                log.warning("%s: not extended (%s)", self, error)
        return self._moment

    def lose(self, loss: LockLost) -> None:
        with self._mutex:
            if self._ended.is_set():
                return
            # check() may have found it first
            loss = self._hold.loss = self._hold.loss or loss
            self._ended.set()
        self.lost.set()
        if self._on_loss:
            _spawn(f"redlockd {self._hold.name}", self._on_loss, loss)

    def _renew(self) -> None:
        try:
            self._run(self._talk, self._sleep)
        except LockLost as loss:
            self.lose(loss)
        except _Stopped:
            pass

    def _sleep(self, seconds: float) -> None:
        if self._ended.wait(seconds) or self._is_forgotten:
            raise _Stopped
