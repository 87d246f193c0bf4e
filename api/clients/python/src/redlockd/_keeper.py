# SPDX-License-Identifier: MIT
"""Keeps the locks of threads while they are held."""

from __future__ import annotations

import os
import sys
import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from . import _log as log
from ._agenda import Agenda, Kept
from ._batch import MOST
from ._clock import LONGEST_SLEEP_S, now
from ._errors import LockLost
from ._process import generation
from ._talk import Hold, Send
from ._threads import spawn

if TYPE_CHECKING:
    from ._sync import Client
    from ._talk import Answer, Talk

# Renewals that no thread has taken after this time get one more: the others
# wait for a server that hangs.
PATIENCE_S = 0.05
IDLE_S = 10.0  # then such a thread ends


class _Clock:
    """One thread that wakes the keepers of this process, each at its moment,
    and one that renews their locks; more while that one waits for a server."""

    def __init__(self) -> None:
        mutex = threading.RLock()
        self._moved = threading.Condition(mutex)
        self._agenda: Agenda[Keeper] = Agenda()
        self._next = 0.0  # when the thread looks again
        self._is_running = False
        self._asked = threading.Condition(mutex)
        self._renewals: deque[Keeper] = deque()
        self._taken_at = 0.0  # when one of them was taken last
        self._idle = self._renewers = 0

    def add(self, keeper: Keeper) -> None:
        with self._moved:
            if not self._is_running:
                spawn("redlockd clock", self._run)
                self._is_running = True
            if self._agenda.add(keeper) and keeper.moment < self._next:
                self._moved.notify()

    def ended(self) -> None:
        with self._moved:
            self._agenda.ended()

    def _run(self) -> None:
        """For ever: it is cheaper to wait than to start again."""
        while True:
            with self._moved:
                time = now()
                self._help(time)
                self._next = self._agenda.next
                if self._renewals:
                    self._next = min(self._next, time + PATIENCE_S)
                if self._next > time:
                    sleep_s = min(self._next - time, LONGEST_SLEEP_S)
                    is_empty = self._next == float("inf")
                    self._moved.wait(None if is_empty else sleep_s)
                    continue
                due = self._agenda.take(time)
            for keeper in due:
                self._wake(keeper, time)

    def _wake(self, keeper: Keeper, time: float) -> None:
        if keeper.is_late:
            keeper.lose(keeper.late())
            return
        with self._moved:
            if keeper.may_renew(time):
                keeper.is_renewing, keeper.resume_at = True, None
                if not self._renewals:
                    self._taken_at = time
                self._renewals.append(keeper)
                if self._idle:
                    self._asked.notify()
            self._agenda.add(keeper)

    # ---- renewals

    def _help(self, time: float) -> None:
        """With the mutex."""
        if not self._renewals or self._idle:
            return
        if self._renewers and time < self._taken_at + PATIENCE_S:
            return
        self._taken_at = time
        try:
            spawn("redlockd renewals", self._renew)
            self._renewers += 1
        except RuntimeError as error:  # as in lose()
            log.warning("%s: not extended (%s)", self._renewals[0], error)

    def _take(self) -> list[Keeper]:
        """Of one client, as many as go together. None: this thread ends."""
        with self._asked:
            while not self._renewals:
                self._idle += 1
                is_asked = self._asked.wait(IDLE_S)
                self._idle -= 1
                if not is_asked and not self._renewals:
                    self._renewers -= 1
                    return []
            renewals = self._renewals
            client = renewals[0].client
            taken: list[Keeper] = []
            stay: list[Keeper] = []
            while renewals and len(taken) < MOST:
                keeper = renewals.popleft()
                fits = keeper.client is client
                (taken if fits else stay).append(keeper)
            renewals.extendleft(reversed(stay))
            self._taken_at = now()
            if renewals and self._idle:
                self._asked.notify()
            return taken

    def _renew(self) -> None:
        while taken := self._take():
            answers: list[Answer] | list[None] = [None] * len(taken)
            while taken:
                asked = [
                    (keeper, send)
                    for keeper, answer in zip(taken, answers, strict=True)
                    if (send := keeper.step(answer))
                ]
                taken = [keeper for keeper, _ in asked]
                if taken:
                    sends = [send for _, send in asked]
                    answers = taken[0].client._courier().ask_all(sends)


_clock = _Clock()


def _forked() -> None:
    global _clock  # noqa: PLW0603 - the threads stayed with the parent
    _clock = _Clock()


if sys.platform != "win32":
    os.register_at_fork(after_in_child=_forked)


class Keeper(Kept):
    """Extends a lock, and notices when it is lost. Most locks are released
    before the first renewal."""

    def __init__(
        self,
        hold: Hold,
        client: Client,
        talk: Callable[[], Talk[bool]],
        on_loss: Callable[[LockLost], None] | None,
    ) -> None:
        """talk: begins a renewal."""
        super().__init__(hold)
        self.client = client
        self._begin = talk
        self._talk: Talk[bool] | None = None
        self._on_loss = on_loss
        self._mutex = threading.Lock()
        self._is_stopped = self._is_lost = False
        self._process = generation()
        self._lost: threading.Event | None = None
        _clock.add(self)

    @property
    def has_ended(self) -> bool:
        return self._is_stopped or self._is_lost or self._is_forgotten

    @property
    def has_gone(self) -> bool:
        return generation() != self._process

    @property
    def lost(self) -> threading.Event:
        """Made for those who look at it: most do not, and it takes long."""
        with self._mutex:
            if self._lost is None:
                self._lost = threading.Event()
                if self._is_lost:
                    self._lost.set()
            return self._lost

    def stop(self) -> None:
        """From now on the lock cannot be lost."""
        with self._mutex:
            self._is_stopped = True
        _clock.ended()

    def late(self) -> LockLost:
        return self._hold.late()

    def lose(self, loss: LockLost) -> None:
        with self._mutex:
            if self.has_ended:
                return
            # check() may have found it first
            loss = self._hold.loss = self._hold.loss or loss
            self._is_lost = True
            if self._lost:
                self._lost.set()
        if not self._on_loss:
            return
        try:
            spawn(f"redlockd {self._hold.name}", self._on_loss, loss)
        except RuntimeError as error:  # too many threads, or at exit
            log.warning("%s; on_loss is not called (%s)", loss, error)

    def step(self, answer: Answer | None) -> Send | None:
        """What its renewal asks for next; None: it rests."""
        if self.has_ended:
            return None
        if not self._talk:
            self._talk = self._begin()
        try:
            step = self._talk.send(answer)
            if isinstance(step, Send):
                return step
            self.resume_at = now() + step.seconds
        except StopIteration as end:
            self._talk = None
            # else it cannot be extended any more
            self.is_renewing = not end.value
        except LockLost as loss:
            self.lose(loss)
        if not self.has_ended:
            _clock.add(self)
        return None
