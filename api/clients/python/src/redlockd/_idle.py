# SPDX-License-Identifier: MIT
"""Connections that nobody uses at the moment, for threads and asyncio."""

from __future__ import annotations

from collections import deque
from typing import Generic, Protocol, TypeVar

from ._clock import now
from ._wire import LONGEST_IDLE_S, MOST_IDLE, Target


class Line(Protocol):
    """What a connection has for this."""

    is_kept: bool  # it was used before
    idle_since: float

    @property
    def has_ended(self) -> bool: ...

    def close(self) -> None: ...


L = TypeVar("L", bound=Line)


class Idle(Generic[L]):
    """Threads may share it: nothing here takes two steps that must not be
    interrupted."""

    def __init__(self) -> None:
        self._lines: dict[Target, deque[L]] = {}
        self._is_closed = False

    def close(self) -> None:
        """Those that are in use are closed after that."""
        self._is_closed = True
        while self._lines:
            _, lines = self._lines.popitem()
            while lines:
                lines.pop().close()

    def forget(self) -> None:
        """As close(), of connections that are closed already."""
        self._is_closed = True
        self._lines.clear()

    def take(self, target: Target) -> L | None:
        """The one that was used last."""
        lines = self._lines.get(target)
        while lines:
            try:
                line = lines.pop()
            except IndexError:  # another thread took the last one
                return None
            is_old = now() - line.idle_since > LONGEST_IDLE_S
            if not is_old and not line.has_ended:
                line.is_kept = True
                return line
            line.close()
        return None

    def give_back(self, target: Target, line: L, is_kept: bool) -> None:
        """is_kept: its server keeps it."""
        lines = self._lines.get(target)
        if lines is None:
            lines = self._lines.setdefault(target, deque())
        line.idle_since = now()
        if is_kept and len(lines) < MOST_IDLE and not self._is_closed:
            lines.append(line)
        else:
            line.close()
