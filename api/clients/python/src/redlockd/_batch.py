# SPDX-License-Identifier: MIT
"""Which calls go at once, and which of them together: without I/O, for threads
and asyncio.

  asked ──→ a slot is free, nobody waits ──→ alone ───────────┐
    │                                                         ├──→ answered
    └─────→ collected ──→ a slot gets free ──→ in a batch ────┘
                │                                  │
                └──→ left: taken out               └──→ left: its lock is
                                                        released afterwards

A slot is one short request under way; there are SLOTS of them. There is no
timer: a call that finds a slot goes at once (in asyncio at the end of the turn
of the loop, with those of the same turn), and what comes meanwhile goes
together as soon as there is one. A request that is overdue gives its slot back:
its replica hangs, and others are to ask another one.

An extend with little time left needs no slot, and goes at once, with others
like it.

An acquire that may wait does so at the server, without a slot, if nothing else
is under way. Otherwise it is tried like any other call, and if the lock is held
it then waits in a request of its own.

Beside another request, an acquire goes in a batch even if it is the only one:
there it is tried once. As a single call it would keep its slot while it is
tried again and again, because others want the same lock at the same time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ._clock import now
from ._replicas import OVERDUE_S
from ._talk import Answer, Send
from ._wire import NO_ANSWER, STALE

SLOTS = 2
MOST = 100  # operations of a batch
LONGEST = 48 * 1024  # bytes of its body; servers take 64 KiB
# Of a batch, no call's timeout is longer than so many times another one's: the
# shortest is that of all.
SPREAD = 2.0
# What each operation of a batch is answered, if the whole batch is. All other
# refusals are of the batch: then each goes alone.
_OF_EACH = (0, 401, 403, 408, 421, 429)
_BODY = '{"operations":[%s]}'


class Call:
    """One operation, from when it is asked for until it is answered."""

    __slots__ = (
        "answer",
        "has_ended",
        "has_left",
        "send",
        "trip",
        "waiter",
    )

    def __init__(self, send: Send, waiter: Any) -> None:
        """waiter: the driver's: who is told."""
        self.send = send
        self.waiter = waiter
        self.trip: Trip | None = None  # with which it goes, until it has ended
        self.has_left = False
        self.has_ended = False
        # None when it has ended: the batch was refused, and it is to go alone
        self.answer: Answer | None = None


class Trip:
    """One request under way."""

    __slots__ = (
        "abort",
        "calls",
        "hangs_at",
        "has_slot",
        "is_batch",
        "is_under_way",
        "leader",
    )

    def __init__(self, has_slot: bool) -> None:
        self.calls: list[Call] = []
        self.abort: Callable[[], object] | None = None  # the driver's
        self.has_slot = has_slot
        self.is_under_way = True
        self.is_batch = False
        self.leader: Call | None = None  # who is to form() and send it
        # The driver notices when the answer is overdue. If it has not by then,
        # something hangs of which it hears nothing.
        self.hangs_at = now() + 2 * OVERDUE_S

    def end(self, answers: Sequence[Answer | None]) -> list[Call]:
        """Whose lock is to be released: its caller has left."""
        for call, answer in zip(self.calls, answers, strict=True):
            call.answer = answer
            call.has_ended = True
            # No cycle of references is left: what a call has is freed at
            # once, not by a collection, which stops the program for
            # milliseconds.
            call.trip = None
        self.abort = None
        self.leader = None
        return [call for call in self.calls if has_to_be_undone(call)]

    @property
    def is_deserted(self) -> bool:
        """Whether nobody waits for it: then it is given up. Releases of a batch
        are to be done all the same."""
        calls = self.calls
        return all([call.has_left for call in calls]) and (
            len(calls) == 1 or all([call.send.is_acquire for call in calls])
        )

    @property
    def send(self) -> Send:
        """What is to be sent."""
        sends = [call.send for call in self.calls]
        if not self.is_batch:
            return sends[0]
        items = ",".join([call.send.item for call in self.calls])
        return Send(
            "POST",
            "/batch",
            {},
            _BODY % items,
            min([send.timeout_s for send in sends]),
        )


class _Load:
    """What a batch has so far."""

    def __init__(self, first: Send) -> None:
        self._groups: dict[str, str] = {}  # by resource
        self._tokens: set[str] = set()
        self._length = len(_BODY)
        self._shortest_s = self._longest_s = first.timeout_s
        self.takes(first)

    def takes(self, send: Send) -> bool:
        """Whether it may go along; it then does."""
        length = self._length + len(send.item) + 1
        token = send.headers.get("X-Lock-Token")
        scope = send.scope
        assert scope
        groups = self._groups
        if groups:
            if length > LONGEST or token in self._tokens:
                return False
            for name in scope.names:
                group = groups.get(name)
                if group is not None and (not group or group != scope.group):
                    return False
            if not self._takes_as_long(send.timeout_s):
                return False
        for name in scope.names:
            groups[name] = scope.group
        if token:
            self._tokens.add(token)
        self._length = length
        return True

    def _takes_as_long(self, timeout_s: float) -> bool:
        if self._shortest_s == timeout_s == self._longest_s:
            return True
        shortest_s = min(self._shortest_s, timeout_s)
        longest_s = max(self._longest_s, timeout_s)
        if longest_s > shortest_s * SPREAD:
            return False
        self._shortest_s, self._longest_s = shortest_s, longest_s
        return True


class Queue:
    """Of one client. The driver calls it from one thread at a time."""

    def __init__(self, slots: int = SLOTS) -> None:
        self._free = slots
        self._under_way = 0
        self._trips: list[Trip] = []  # those with a slot
        self._calls: deque[Call] = deque()
        self._urgent: deque[Call] = deque()  # need no slot
        self._led: Trip | None = None  # that is about to be formed

    @property
    def is_waiting(self) -> bool:
        """Whether calls are collected."""
        return bool(self._calls or self._urgent)

    def set_out(self, send: Send) -> Trip | None:
        """For one call that goes alone, at once. None: it has to queue."""
        if not self._free or self._calls:
            return None
        if self._under_way and _is_tried_once(send):
            return None
        trip = self._take(has_slot=True)
        self._let_wait(trip, send)
        return trip

    def set_out_without_slot(self) -> Trip:
        """For one that waits at the server, or has no time to wait here."""
        return self._take(has_slot=False)

    def _take(self, *, has_slot: bool) -> Trip:
        self._under_way += 1
        trip = Trip(has_slot)
        if has_slot:
            self._free -= 1
            self._trips.append(trip)
        return trip

    def add(self, call: Call) -> None:
        (self._urgent if call.send.is_urgent else self._calls).append(call)

    def next_trip(self) -> Trip | None:
        """For those that wait, the first of them leads; form() follows, or it
        leaves. None: there is no slot, or nobody waits, or another one is about
        to take all along."""
        if self._led:
            return None
        if self._urgent:
            trip = self._take(has_slot=False)
        elif self._calls and self._free:
            trip = self._take(has_slot=True)
        else:
            return None
        trip.leader = (self._urgent or self._calls)[0]
        self._led = trip
        return trip

    def form(self, trip: Trip) -> Trip:
        """Those that go with it, in their order: as late as possible, so that
        many do."""
        assert trip is self._led
        self._led = None
        calls = self._calls if trip.has_slot else self._urgent
        first = calls.popleft()
        self._join(trip, first)
        if calls:
            self._fill(trip, calls)
        else:
            self._let_wait(trip, first.send)
        trip.is_batch = len(trip.calls) > 1 or (
            trip.has_slot and self._under_way > 1 and _is_tried_once(first.send)
        )
        return trip

    @staticmethod
    def _join(trip: Trip, call: Call) -> None:
        call.trip = trip
        trip.calls.append(call)

    def _fill(self, trip: Trip, calls: deque[Call]) -> None:
        load = _Load(trip.calls[0].send)
        stay: list[Call] = []
        while calls and len(trip.calls) < MOST and len(stay) < MOST:
            call = calls.popleft()
            if load.takes(call.send):
                self._join(trip, call)
            else:
                stay.append(call)
        calls.extendleft(reversed(stay))

    def end(self, trip: Trip) -> None:
        """There is an answer, or it is overdue: its slot is free. May be called
        twice."""
        if trip.is_under_way:
            trip.is_under_way = False
            self._under_way -= 1
        self._give_back(trip)

    def _give_back(self, trip: Trip) -> None:
        if trip.has_slot:
            trip.has_slot = False
            self._trips.remove(trip)
            self._free += 1

    def _let_wait(self, trip: Trip, send: Send) -> None:
        """If it may, and nothing else is under way: at the server, without a
        slot."""
        if send.patience and self._under_way == 1:
            send.wait()
            self._give_back(trip)

    def find_hanging(self, time: float) -> float:
        """Takes their slots back, as when a name server does not answer; when
        to look again."""
        for trip in self._trips[:]:
            if trip.hangs_at <= time:
                self.end(trip)
        moments = [trip.hangs_at for trip in self._trips]
        return min(moments, default=float("inf"))

    def leave(self, call: Call) -> None:
        """Its caller has no use for it any more."""
        call.has_left = True
        if call.trip is None and not call.has_ended:
            (self._urgent if call.send.is_urgent else self._calls).remove(call)
        if self._led and self._led.leader is call:
            self.end(self._led)
            self._led = None


def _is_tried_once(send: Send) -> bool:
    """In a batch, beside others."""
    return send.is_acquire and len(send.item) + len(_BODY) <= LONGEST


def share(trip: Trip, answer: Answer) -> list[Answer | None]:
    """What each of its calls is answered. None: it is to go alone."""
    calls = trip.calls
    if not trip.is_batch:
        return [answer]
    status = answer.status
    if status in _OF_EACH or status >= 500:
        return [answer] * len(calls)
    if status >= 300:
        # the first one of two may have been carried out
        return [_no_result(answer) if answer.is_repeated else None] * len(calls)
    results = answer.body.get("results")
    if not isinstance(results, list) or len(results) != len(calls):
        return [_no_result(answer)] * len(calls)
    return [_result(one, answer) for one in results]


def _result(one: Any, of: Answer) -> Answer | None:
    if isinstance(one, dict):
        status = one.get("status")
        if status == 401:
            # alone, it may have a newer access token
            return _no_result(of) if of.is_repeated else None
        body = one.get("grant") or one.get("release") or one.get("problem")
        if isinstance(status, int) and isinstance(body, dict):
            result = Answer(status, body, of.url, of.sent)
            result.is_repeated = of.is_repeated
            return result
    return _no_result(of)


def _no_result(of: Answer) -> Answer:
    body = {"code": NO_ANSWER, "detail": "no answer to a batch"}
    return Answer(0, body, of.url, of.sent)


# To those in a batch whose sender was interrupted. No server is to blame: they
# ask again.
INTERRUPTED = Answer(0, {"code": STALE, "detail": "interrupted"})


def has_to_be_undone(call: Call) -> bool:
    """Whether somebody must look after a lock that nobody wants any more."""
    answer = call.answer
    return (
        call.has_left
        and call.send.is_acquire
        and answer is not None
        and not answer.grants_nothing
    )
