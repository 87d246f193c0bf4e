# SPDX-License-Identifier: MIT
"""Times in which nothing is wrong: all nodes vote, and no fault is active but
that a server stands still for a moment. What must be true then, and cannot be
asked for while everything breaks, is judged by what happened in them.

How late a second may be depends on how late this process itself is: a thread
that sleeps for a moment measures it. A time in which that was too much is left
out, and counted.
"""
from __future__ import annotations

import random
import signal
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from history import MS, SECOND, Violation, now
from names import Names
from plan import SERVERS, Fault

CALM_S = 8
TRUE_AGAIN_S = 20  # in which all nodes vote after the faults before it
LOOK_S = 0.2
STILL_S = (0.1, 0.5)
PAUSES = (0, 1, 1, 2)  # how often a server stands still
SLEEP_S = 0.02
SLACK = 250 * MS     # of a machine that does nothing else
TIMES = 5            # as late as a thread is, for what takes several steps
LATEST = 2 * SECOND  # nothing is judged if more would have to be allowed


class Metronome(threading.Thread):
    """How late a thread is that wants to go on."""

    def __init__(self) -> None:
        super().__init__(name="metronome", daemon=True)
        self.late: list[tuple[int, int]] = []  # when, and by how much
        self.stop = threading.Event()

    def run(self) -> None:
        while not self.stop.is_set():
            begin = now()
            time.sleep(SLEEP_S)
            late = now() - begin - int(SLEEP_S * SECOND)
            self.late = [*self.late[-2000:], (now(), late)]

    def worst(self, begin: int, end: int) -> int:
        return max((late for at, late in self.late if begin <= at <= end),
                   default=0)


Place = tuple[int, str, str]  # a lock's id, a node, a resource


@dataclass
class Window:
    """A calm time."""
    begin: int
    end: int = 0  # 0: it goes on
    late: int = 0  # how late a thread was at worst
    is_whole: bool = False  # all nodes voted all the time
    stills: list[tuple[int, int]] = field(default_factory=list)
    found: list[Violation] = field(default_factory=list)
    judged: set[int] = field(default_factory=set)  # locks that were looked at
    # of a lock on a node, under a name: something else is there; when it had gone
    others: set[Place] = field(default_factory=set)
    gone: dict[Place, int] = field(default_factory=dict)

    @property
    def slack(self) -> int:
        """What is allowed beyond a second."""
        return SLACK + TIMES * self.late

    @property
    def is_judged(self) -> bool:
        return self.end > 0 and self.is_whole and self.slack <= LATEST

    def deadline(self, moment: int, limit: int) -> int:
        """By when what should come within that limit must have come: a server
        that stands still has as much time again when it goes on."""
        due = moment + limit + self.slack
        for begin, end in sorted(self.stills):
            if begin <= due:
                due = max(due, end + limit + self.slack)
        return due


class Calm(Names):
    windows: list[Window]
    metronome: Metronome

    def calm(self, fault: Fault) -> Iterator[None]:
        yield
        if not (yield from self._wait_until_calm()):
            self.done["calm not whole"] += 1
            return
        window = Window(now())
        self.windows.append(window)
        over = window.begin + CALM_S * SECOND
        stills = self._stand_still(random.Random(fault.begin), window)
        look = now()
        while now() < over:
            next(stills, None)
            if now() >= look:
                look = now() + int(LOOK_S * SECOND)
                self.look_at(window)
            yield
        stills.close()
        window.late = self.metronome.worst(window.begin, now())
        window.is_whole = self._is_whole()
        window.end = now()
        if window.is_judged:
            self.violations += window.found
        self.done["calm met" if window.is_judged else "calm too late"] += 1

    def look_at(self, window: Window) -> None:
        """At what can be seen only now."""

    def _wait_until_calm(self) -> Iterator[None]:
        """Whether it came about."""
        over = now() + TRUE_AGAIN_S * SECOND
        due = 0
        while now() < over:
            if now() >= due:
                if self._is_whole():
                    return True
                due = now() + int(LOOK_S * SECOND)
            yield
        return False

    def _stand_still(self, rng: random.Random,
                     window: Window) -> Iterator[None]:
        for _ in range(rng.choice(PAUSES)):
            begin = now() + int(rng.uniform(0, CALM_S / 3) * SECOND)
            while now() < begin:
                yield
            server = self.cluster.servers[rng.randrange(SERVERS)]
            begin, end = now(), now() + int(rng.uniform(*STILL_S) * SECOND)
            server.signal(signal.SIGSTOP)
            try:
                while now() < end:
                    yield
            finally:
                server.signal(signal.SIGCONT)
                window.stills.append((begin, now()))
