# SPDX-License-Identifier: MIT
"""What happened: calls of clients, faults, and the violations found in them.

All moments are time.monotonic_ns() of the one process that runs all clients.
"""
from __future__ import annotations

import itertools
import time
from dataclasses import dataclass, field, replace

MS = 1_000_000
SECOND = 1_000_000_000
ACQUIRE, EXTEND, RELEASE, INSPECT = "acquire", "extend", "release", "inspect"
# with a token that nobody has; what an identity may not; what that brought
STRANGER, TRESPASS, LOOK = "stranger", "trespass", "look"
UPGRADE = "upgrade"  # of a shared lock to an exclusive one: refused
# a forced release; a watch of one lock; a pool, a list, and what has no lock
FORCE, WATCH, POOL, LIST, PAGE = "force", "watch", "pool", "list", "page"
FREE = "free"  # the version of a lock that nobody holds
LONGEST_S = 30  # that a client asks about a lock after a forced release
EVERY = "*"  # in place of the resource of a list
EXCLUSIVE, SHARED = "exclusive", "shared"
# a grant has a higher number than each earlier one of these modes
ABOVE = {EXCLUSIVE: (EXCLUSIVE, SHARED), SHARED: (EXCLUSIVE,)}

now = time.monotonic_ns
_ids = itertools.count(1)


@dataclass(slots=True)
class Call:
    """A request, noted before it is sent; the answer is filled in later."""
    op: str
    client: int
    server: int
    resources: tuple[str, ...]  # sorted: of one lock
    ttl_ms: int = 0
    sent: int = field(default_factory=now)
    id: int = field(default_factory=lambda: next(_ids))
    of: int = 0          # id of the acquire that granted the lock
    number: int = 0      # its fencing token
    key: str = ""        # the idempotency key with which it was asked for
    is_repeat: bool = False  # its client has asked with the key before
    opened: int = 0      # when the connection was opened
    wait_ms: int = 0     # how long an acquire may wait
    limit: int = 0       # of a permit; resources: its pool, until it is granted
    pool: str = ""       # … which stays
    permits: int = 0     # with a limit: as many as were asked for
    after: str = ""      # the version that a watch knows
    version: str = ""    # of a lock that somebody looked at
    others: list[dict] | None = None  # in its batch; None: it is sent alone
    place: int = 0       # … among them
    session: int = 0     # of a watcher that did not leave meanwhile
    mode: str = EXCLUSIVE  # as which the lock is asked for, or was when it ended
    status: int = 0      # 0: no answer
    code: str = ""       # of a problem; without answer: why there is none
    elapsed_ms: int = 0
    validity_ms: int = 0
    done: int = 0        # when the answer was read, or nobody waits any more

    @property
    def is_won(self) -> bool:
        return self.status in (200, 201) and self.done > 0

    @property
    def end(self) -> int:
        """Until when the client may rely on the lock, by this answer."""
        return self.sent + (self.elapsed_ms + self.validity_ms) * MS

    def __str__(self) -> str:
        answer = f"{self.status} {self.code}" if self.done else "pending"
        took = (self.done - self.sent) / MS if self.done else 0
        mode = f"{SHARED} " if self.mode == SHARED else ""
        text = (f"client {self.client} {mode}{self.op} "
                f"{'+'.join(self.resources)} at server {self.server}: "
                f"{answer} after {took:.1f} ms")
        if self.wait_ms:
            text += f" of {self.wait_ms}"
        if self.after:
            text += f", after {self.after}"
        if self.key:
            text += f", key {self.key[:8]}"
        if self.number:
            text += f", number {self.number}"
        if self.op in (ACQUIRE, EXTEND) and self.is_won:
            text += (f", ttl {self.ttl_ms}, elapsed {self.elapsed_ms}, "
                     f"validity {self.validity_ms}")
        return text


@dataclass(slots=True)
class Span:
    """A fault, while it is active."""
    kind: str
    text: str
    begin: int = field(default_factory=now)
    end: int = 0  # 0: still active
    server: int = -1  # the one that was killed

    def overlaps(self, begin: int, end: int) -> bool:
        return self.begin <= end and (self.end == 0 or self.end >= begin)


@dataclass(frozen=True)
class Violation:
    invariant: str
    text: str
    at: int = field(compare=False)
    resource: str = ""


class History:
    """Calls of the last while, and all faults."""

    def __init__(self) -> None:
        self.begin = now()
        self.calls: list[Call] = []
        self.spans: list[Span] = []
        self.forgotten = 0                # calls before this were forgotten
        # their greatest numbers, of each resource and mode
        self.highest: dict[tuple[str, str], int] = {}

    def add(self, call: Call) -> Call:
        self.calls.append(call)  # one step: clients are threads
        return call

    def snapshot(self) -> list[Call]:
        """All that was known at one moment. What is answered while somebody
        looks at it would else stand there without what came just before it,
        say the release that made a later grant right."""
        at = now()
        return [call if 0 < call.done <= at else
                replace(call, status=0, code="", done=0)
                for call in self.calls[:]]

    def forget(self, before: int) -> None:
        """Drops the calls that were answered before that moment, but not those
        of a lock about which there are later ones, nor those with its key, any
        of which may have taken its place, nor what may have ended it by
        force."""
        count = len(self.calls)
        old = self.calls[:count]
        for call in old:
            if call.op == ACQUIRE and call.is_won and call.done < before:
                for name in call.resources:
                    of = name, call.mode
                    self.highest[of] = max(call.number, self.highest.get(of, 0))
        forced = before - LONGEST_S * SECOND
        late = [call for call in old if not call.done or call.done >= before]
        kept = {call.of for call in late} - {0}
        keys = {call.key for call in late} - {""}
        self.calls[:count] = [call for call in old
                              if not call.done or call.done >= before
                              or call.of in kept or call.key in keys
                              or (call.op == FORCE and call.done >= forced)]
        self.forgotten = before

    def lines(self) -> list[str]:
        """All that is remembered."""
        calls = sorted(self.snapshot(), key=lambda call: call.sent)
        return [f"{self._at(call.sent)} {call}" for call in calls]

    def around(self, violation: Violation, before_s: float = 3,
               after_s: float = 0.5, most: int = 80) -> list[str]:
        """Lines that tell what happened around a violation."""
        first = violation.at - int(before_s * SECOND)
        last = violation.at + int(after_s * SECOND)
        lines = [(span.begin, f"fault {span.kind}: {span.text}" +
                  (f", until {self._at(span.end)}" if span.end else ""))
                 for span in self.spans if span.overlaps(first, last)]
        calls = [call for call in self.snapshot()
                 if violation.resource in call.resources
                 and call.sent <= last and (call.done or last) >= first
                 and (call.number or call.status != 409 or call.op == FORCE)]
        calls.sort(key=lambda call: abs(call.sent - violation.at))
        lines += [(call.sent, str(call)) for call in calls[:most]]
        return [f"{self._at(at)} {text}" for at, text in sorted(lines)]

    def _at(self, moment: int) -> str:
        return f"{(moment - self.begin) / SECOND:9.4f}"
