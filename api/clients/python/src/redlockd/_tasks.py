# SPDX-License-Identifier: MIT
"""The requests of a client for asyncio: who sends what, and who waits."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from ._agenda import Agenda, Kept
from ._batch import INTERRUPTED, Call, Queue, Trip, has_to_be_undone, share
from ._clock import LONGEST_SLEEP_S, now
from ._streams import End, Pool
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
from ._wire import Ask, Failure, Stale

if TYPE_CHECKING:
    from ._base import Caller

T = TypeVar("T")
Asking = Generator[Ask, End, Answer]
# the event loop holds only weak references to its tasks
_tasks: set[asyncio.Task[Any]] = set()


def start(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    task = asyncio.ensure_future(work)
    _tasks.add(task)
    task.add_done_callback(_tasks.discard)
    return task


class Woken(Kept):
    def wake(self) -> bool:
        """Whether to look at it again."""
        raise NotImplementedError


class Clock:
    """One timer for all locks of a client: many are renewed together."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._agenda: Agenda[Woken] = Agenda()
        self._next = float("inf")
        self._timer: asyncio.TimerHandle | None = None

    def add(self, keeper: Woken) -> None:
        if self._agenda.add(keeper) and keeper.moment < self._next:
            self._set()

    def ended(self) -> None:
        self._agenda.ended()

    def _set(self) -> None:
        if self._timer:
            self._timer.cancel()
            self._timer = None
        self._next = self._agenda.next
        if self._next < float("inf"):
            # which stops while the machine sleeps
            sleep_s = min(max(self._next - now(), 0.0), LONGEST_SLEEP_S)
            self._timer = self._loop.call_later(sleep_s, self._run)

    def _run(self) -> None:
        for keeper in self._agenda.take(now()):
            if keeper.wake():
                self._agenda.add(keeper)
        self._set()


class Courier:
    """Of one client in one event loop."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self.loop = asyncio.get_running_loop()
        self.clock = Clock(self.loop)
        self._pool = Pool(caller._identity)
        self._queue = Queue()
        self._departs = False
        self._undoing: set[asyncio.Task[None]] = set()
        # with calls that have left; until they have ended
        self._left: dict[Trip, asyncio.Future[None]] = {}

    def close(self) -> None:
        """What was asked before goes on."""
        self._pool.close()

    async def run(self, talk: Talk[T]) -> T:
        try:
            step = next(talk)
            while True:
                if isinstance(step, Sleep):
                    await asyncio.sleep(step.seconds)
                    step = talk.send(None)
                else:
                    step = talk.send(await self.ask(step))
        except StopIteration as end:
            result: T = end.value
            return result

    async def ask(self, send: Send) -> Answer:
        if not send.scope:
            return await self._exchange(send)
        if send.wait_s:
            trip = self._queue.set_out_without_slot()
            try:
                return await self._go_alone(send, trip)
            finally:
                self._end(trip)
        call = Call(send, self.loop.create_future())
        self._queue.add(call)
        self._depart_soon()
        try:
            await call.waiter
        except asyncio.CancelledError:
            self._leave(call)
            raise
        return call.answer or await self._go_alone(send)

    async def _go_alone(self, send: Send, trip: Trip | None = None) -> Answer:
        try:
            return await self._exchange(send, trip)
        except asyncio.CancelledError:
            # the answer may be on its way, and the grant with it
            if send.is_acquire:
                self._undo(send, UNKNOWN)
            raise

    # ---- those that go together

    def _depart_soon(self) -> None:
        """At the end of this turn of the loop, with all that it asks for."""
        if not self._departs and self._queue.is_waiting:
            self._departs = True
            self.loop.call_soon(self._depart)

    def _depart(self) -> None:
        self._departs = False
        while trip := self._queue.next_trip():
            self._carry(self._queue.form(trip))

    def _carry(self, trip: Trip) -> None:
        """Most need no task: a connection is idle."""
        send = trip.send
        asking = self._asking(send, trip)
        ask = next(asking)

        def carried(end: End) -> None:
            if isinstance(end, Failure) and trip.is_deserted:
                self._end(trip, INTERRUPTED)  # no server is to blame
                return
            if isinstance(end, Stale):
                ask.is_repeated = True
                self._carry_on(trip, asking, ask)
                return
            try:
                self._carry_on(trip, asking, asking.send(end))
            except StopIteration as done:
                self._end(trip, done.value)

        line = self._pool.ask_at_once(ask, carried)
        if line:
            trip.abort = line.close
        else:
            self._carry_on(trip, asking, ask)

    def _carry_on(self, trip: Trip, asking: Asking, ask: Ask) -> None:
        task = start(self._finish(asking, ask))
        task.add_done_callback(partial(self._carried, trip))
        trip.abort = task.cancel

    def _carried(self, trip: Trip, task: asyncio.Task[Answer]) -> None:
        """The task may have been cancelled before it began."""
        answer = INTERRUPTED
        try:
            if not task.cancelled():
                answer = task.result()
        finally:
            self._end(trip, answer)

    def _end(self, trip: Trip, answer: Answer | None = None) -> None:
        self._queue.end(trip)
        if not answer:
            self._depart_soon()
            return
        if ended := self._left.pop(trip, None):
            ended.set_result(None)
        undone = trip.end(share(trip, answer))
        for call in trip.calls:
            if not call.waiter.done():
                call.waiter.set_result(None)
        self._depart_soon()
        for call in undone:
            assert call.answer
            self._undo(call.send, call.answer)

    def _leave(self, call: Call) -> None:
        self._queue.leave(call)
        trip = call.trip
        if call.has_ended:
            if has_to_be_undone(call):
                assert call.answer
                self._undo(call.send, call.answer)
        elif trip:
            if trip not in self._left:
                self._left[trip] = self.loop.create_future()
            if trip.abort and trip.is_deserted:
                trip.abort()

    def give_back(self, attempt: Attempt) -> None:
        """Of an acquire that was given up: what an earlier request of it may
        have been granted."""
        if attempt.asked and attempt.may_be_granted:
            self._undo(attempt.asked, UNKNOWN)

    async def finish_giving_back(self) -> None:
        """The event loop may be about to end. Another cancellation ends this at
        once."""
        until = self.loop.time() + GIVE_BACK_S
        for kind in self._left.values(), self._undoing:
            left_s = until - self.loop.time()
            if kind and left_s > 0:
                await asyncio.wait(tuple(kind), timeout=left_s)

    def _undo(self, send: Send, answer: Answer) -> None:
        replicas = self._caller._replicas
        task = start(self.run(undo(replicas, send, answer, send.timeout_s)))
        self._undoing.add(task)
        task.add_done_callback(self._undoing.discard)

    # ---- one request

    def _asking(self, send: Send, trip: Trip | None) -> Asking:
        return self._caller._asking(send, partial(self._overdue, trip))

    def _overdue(self, trip: Trip | None) -> None:
        if trip:
            self._queue.end(trip)
            self._depart_soon()

    async def _exchange(self, send: Send, trip: Trip | None = None) -> Answer:
        asking = self._asking(send, trip)
        return await self._finish(asking, next(asking))

    async def _finish(self, asking: Asking, ask: Ask) -> Answer:
        try:
            while True:
                try:
                    end: End = await self._pool.ask(ask)
                except Failure as failure:
                    end = failure
                ask = asking.send(end)
        except StopIteration as done:
            answer: Answer = done.value
            return answer
