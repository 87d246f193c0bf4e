# SPDX-License-Identifier: MIT
"""What the locks protect: a number, read, changed and written back.

It refuses fencing tokens below the highest that it saw, on reads as on writes,
as README tells those to do whom a pause must not hurt. Those who hold a shared
lock only read: their numbers have no order, but none may be below a writer's.

  register  no update is lost, and nobody who believes in a lock is refused
"""
from __future__ import annotations

import threading
from dataclasses import dataclass, field

from history import EXCLUSIVE, Violation, now


@dataclass
class Register:
    name: str
    value: int = 0
    highest: int = 0
    of_writers: int = 0  # the highest of these
    updates: int = 0   # writes that were accepted
    refusals: int = 0  # of numbers that were too low
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, number: int, mode: str = EXCLUSIVE) -> int | None:
        """None: refused."""
        with self.lock:
            return self.value if self._accepts(number, mode) else None

    def write(self, number: int, value: int) -> bool:
        with self.lock:
            if not self._accepts(number, EXCLUSIVE):
                return False
            self.value = value
            self.updates += 1
            return True

    def check(self, at: int) -> list[Violation]:
        if self.value == self.updates:
            return []
        return [Violation("register", f"{self.updates} updates of {self.name} "
                          f"were accepted, {self.value} are in it", at,
                          self.name)]

    def _accepts(self, number: int, mode: str) -> bool:
        is_writer = mode == EXCLUSIVE
        if number < (self.highest if is_writer else self.of_writers):
            self.refusals += 1
            return False
        self.highest = max(self.highest, number)
        if is_writer:
            self.of_writers = number
        return True


def refused(name: str, number: int, end: int) -> list[Violation]:
    """A holder was refused, who believes until that end."""
    at = now()
    if at >= end:
        return []
    return [Violation("register", f"number {number} was refused by {name} "
                      f"{(end - at) / 1e6:.1f} ms before its holder's belief "
                      "ends", at, name)]
