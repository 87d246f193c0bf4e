"""Histories made by hand: what feeds the checker in the self tests."""
from __future__ import annotations

from history import ACQUIRE, MS, Call, Span

BASE = 1_000 * MS  # long past, however lately the machine was booted


class Script:
    """Writes calls, with moments in ms."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.spans: list[Span] = []

    def call(self, op: str, sent: float, done: float, status: int = 200,
             code: str = "", validity: int = 0, lock: Call | None = None,
             number: int = 0, server: int = 0) -> Call:
        call = Call(op, len(self.calls), server,
                    lock.resources if lock else ("r",), 1000,
                    BASE + int(sent * MS))
        call.opened, call.done = call.sent, BASE + int(done * MS)
        call.status, call.code, call.validity_ms = status, code, validity
        call.number = lock.number if lock else number
        call.key = lock.key if lock else ""
        call.of = lock.id if lock else (call.id if op == ACQUIRE else 0)
        self.calls.append(call)
        return call

    def grant(self, sent: float, done: float, number: int,
              validity: int = 100) -> Call:
        return self.call(ACQUIRE, sent, done, 201, "", validity, None, number)

    def several(self, names: str, sent: float, done: float, number: int,
                validity: int = 100) -> Call:
        """names: of a letter each."""
        call = self.grant(sent, done, number, validity)
        call.resources = tuple(names)
        return call

    def keyed(self, sent: float, done: float, number: int = 0,
              status: int = 201, code: str = "") -> Call:
        """All have the same key; for longer than others."""
        call = self.call(ACQUIRE, sent, done, status, code,
                         500 if number else 0, None, number)
        call.key, call.is_repeat = "k", status == 200
        return call
