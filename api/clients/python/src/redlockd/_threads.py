# SPDX-License-Identifier: MIT
"""The requests of a client for threads: who sends what, and who waits."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ._batch import (
    INTERRUPTED,
    Call,
    Queue,
    Trip,
    share,
)
from ._clock import LONGEST_SLEEP_S, now
from ._sockets import Pool
from ._talk import (
    GIVE_BACK_S,
    UNKNOWN,
    Answer,
    Attempt,
    Send,
    Sleep,
    Talk,
    undo,
)
from ._wire import Failure, Reply

if TYPE_CHECKING:
    from typing import TypeVar

    from ._base import Caller

    T = TypeVar("T")


def spawn(
    name: str, work: Callable[..., object], *words: object
) -> threading.Thread:
    """Raises RuntimeError if there are too many threads, or at exit."""
    thread = threading.Thread(target=work, name=name, args=words, daemon=True)
    thread.start()
    return thread


class _Waiter:
    """A thread that waits for the answers to its calls."""

    __slots__ = ("_bell", "leads")

    def __init__(self) -> None:
        self.leads: list[Trip] = []  # that it is to form and send
        self._bell = threading.Lock()
        self._bell.acquire()

    def ring(self) -> None:
        """With the mutex. It may have been rung already."""
        if self._bell.locked():
            self._bell.release()

    def sleep(self, seconds: float) -> None:
        """Until it rings; it may wake for no reason."""
        self._bell.acquire(True, max(0.0, seconds))


class Courier:
    """Of one client in one process. There is no thread of its own: when a
    request ends, its thread hands the slot, and what was collected meanwhile,
    to the first thread that waits."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._pool = Pool(caller._identity)
        self._mutex = threading.RLock()
        self._queue = Queue()

    def close(self) -> None:
        """What was asked before goes on."""
        self._pool.close()

    def run(self, talk: Talk[T]) -> T:
        try:
            step = next(talk)
            while True:
                if isinstance(step, Sleep):
                    time.sleep(step.seconds)
                    step = talk.send(None)
                else:
                    step = talk.send(self.ask(step))
        except StopIteration as end:
            result: T = end.value
            return result

    def ask(self, send: Send) -> Answer:
        # a signal handler or a finalizer of the user may run in the middle of
        # what follows: nobody else could go on while it waits
        is_within = self._mutex._is_owned()  # type: ignore[attr-defined]
        if is_within or not send.scope:
            return self._exchange(send)
        with self._mutex:
            if send.wait_s or send.is_urgent:
                trip: Trip | None = self._queue.set_out_without_slot()
            else:
                trip = self._queue.set_out(send)
        if not trip:
            return self.ask_all([send])[0]
        try:
            return self._exchange(send, trip)
        finally:
            self._end(trip)

    def ask_all(self, sends: Sequence[Send]) -> list[Answer]:
        """Those go together, and with others."""
        waiter = _Waiter()
        calls = [Call(send, waiter) for send in sends]
        try:
            with self._mutex:
                for call in calls:
                    self._queue.add(call)
                self._hand_over()
            for call in calls:
                self._wait(waiter, call)
        except BaseException:
            self._leave(calls)
            raise
        return [call.answer or self._exchange(call.send) for call in calls]

    def _wait(self, waiter: _Waiter, call: Call) -> None:
        while not call.has_ended:
            if waiter.leads:
                self._lead(waiter.leads.pop())
                continue
            with self._mutex:
                time = now()
                look_at = self._queue.find_hanging(time)
                self._hand_over()
            waiter.sleep(min(look_at - time, LONGEST_SLEEP_S))

    def _lead(self, trip: Trip) -> None:
        answers: list[Answer | None] | None = None
        try:
            with self._mutex:
                self._queue.form(trip)
                self._hand_over()
            answers = share(trip, self._exchange(trip.send, trip))
        finally:
            answers = answers or [INTERRUPTED] * len(trip.calls)
            try:
                self._end(trip, answers)
            except BaseException:  # interrupted: the others wait for it
                self._end(trip, answers)
                raise

    def _end(self, trip: Trip, answers: Sequence[Answer | None] = ()) -> None:
        """May be called twice."""
        with self._mutex:
            self._queue.end(trip)
            trip.end(answers)
            for call in trip.calls:
                call.waiter.ring()
            self._hand_over()

    def _hand_over(self) -> None:
        """With the mutex: each free slot to a thread that waits."""
        while trip := self._queue.next_trip():
            assert trip.leader
            trip.leader.waiter.leads.append(trip)
            trip.leader.waiter.ring()

    def _leave(self, calls: list[Call]) -> None:
        """give_back() looks after what they may have been granted."""
        with self._mutex:
            for call in calls:
                call.send.left = call
                self._queue.leave(call)
                call.waiter.leads.clear()
            self._hand_over()

    def give_back(self, attempt: Attempt) -> None:
        """Of an acquire that was interrupted: what it may have been granted."""
        send = attempt.asked
        if send and (attempt.is_open or attempt.may_be_granted):
            self.finish(self._give_back, send, attempt.may_be_granted)

    def _give_back(self, send: Send, may_be_granted: bool) -> None:
        answer: Answer | None = UNKNOWN
        if call := send.left:
            if call.trip:  # others go with it, and one of them sends it
                self._wait(call.waiter, call)
            answer = call.answer  # None: it was not asked
            if may_be_granted and (answer is None or answer.grants_nothing):
                answer = UNKNOWN
        if answer:
            replicas = self._caller._replicas
            self.run(undo(replicas, send, answer, send.timeout_s))

    @staticmethod
    def finish(work: Callable[..., object], *words: object) -> None:
        """What was interrupted: the program may be about to end. Another
        interrupt ends this at once."""
        with contextlib.suppress(RuntimeError):  # too many threads
            spawn("redlockd release", work, *words).join(GIVE_BACK_S)

    def _exchange(self, send: Send, trip: Trip | None = None) -> Answer:
        asking = self._caller._asking(send, partial(self._overdue, trip))
        ask = next(asking)
        try:
            while True:
                try:
                    end: Reply | Failure = self._pool.ask(ask)
                except Failure as failure:
                    end = failure
                ask = asking.send(end)
        except StopIteration as done:
            answer: Answer = done.value
            return answer

    def _overdue(self, trip: Trip | None) -> None:
        if trip:
            with self._mutex:
                self._queue.end(trip)
                self._hand_over()
