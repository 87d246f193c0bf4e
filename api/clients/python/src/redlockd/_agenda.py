# SPDX-License-Identifier: MIT
"""Which held locks have to be looked at, and when: without I/O, for threads and
asyncio."""

from __future__ import annotations

import heapq
import itertools
from typing import Generic, TypeVar

from ._talk import Hold

FEW = 100  # keepers that have ended may stay on the agenda


class Kept:
    """A held lock on the agenda: to be renewed in time, and to be called lost
    when its time is up."""

    def __init__(self, hold: Hold) -> None:
        self._hold = hold
        self._is_forgotten = False
        self.is_renewing = False
        self.resume_at: float | None = None  # a renewal that failed
        self.number = 0  # of its entry on the agenda; older ones do not count

    def __repr__(self) -> str:
        return self._hold.name

    @property
    def has_ended(self) -> bool:
        raise NotImplementedError

    @property
    def has_gone(self) -> bool:
        """With its process or its event loop."""
        raise NotImplementedError

    @property
    def is_late(self) -> bool:
        return self._hold.remaining_s <= 0

    @property
    def moment(self) -> float:
        """When to look at it. The loss must not wait for an answer: it is
        looked for while a renewal is under way, too."""
        grant = self._hold.grant
        if not self.is_renewing:
            return min(grant.renew_at, grant.work_until)
        if self.resume_at is not None:
            return min(self.resume_at, grant.work_until)
        return grant.work_until

    def may_renew(self, time: float) -> bool:
        """It may be renewed a little earlier than it has to be, together with
        others."""
        if self.is_renewing:
            return self.resume_at is not None and time >= self.resume_at
        return time >= self._hold.grant.renew_from

    def forget(self) -> None:
        """Its lock is no longer extended. It takes no mutex: a finalizer may
        run in the middle of any other function, in any thread."""
        self._is_forgotten = True


K = TypeVar("K", bound=Kept)


class Agenda(Generic[K]):
    """Those of one process, or of one event loop."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, K]] = []
        self._numbers = itertools.count(1)
        self._ended = 0

    @property
    def next(self) -> float:
        return self._heap[0][0] if self._heap else float("inf")

    def add(self, kept: K) -> bool:
        """Whether it is the next one now."""
        kept.number = next(self._numbers)
        heapq.heappush(self._heap, (kept.moment, kept.number, kept))
        return self._heap[0][2] is kept

    def ended(self) -> None:
        """One of them has."""
        self._ended += 1
        if self._ended > max(FEW, len(self._heap) // 2):
            self._heap = [one for one in self._heap if _counts(one)]
            heapq.heapify(self._heap)
            self._ended = 0

    def take(self, time: float) -> list[K]:
        """Those that are due; with them, those that may be renewed already."""
        due: list[K] = []
        heap = self._heap
        while heap:
            moment, _, kept = heap[0]
            if not _counts(heap[0]):
                heapq.heappop(heap)
            elif moment <= time or (due and kept.may_renew(time)):
                heapq.heappop(heap)
                due.append(kept)
            else:
                break
        return due


def _counts(entry: tuple[float, int, K]) -> bool:
    _, number, kept = entry
    return number == kept.number and not kept.has_ended
