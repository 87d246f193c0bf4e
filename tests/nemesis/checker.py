"""Proves or refutes, from calls alone, what redlockd promises.

A client believes in its lock from the moment it read the answer until the
moment it sent the request + elapsed_ms + validity_ms, or until it sends the
release. An extension prolongs it. What was not answered may have happened.

  exclusion  no two clients believe in one resource at once
  rising     who was answered before another asked has the lower number
  own        an extension that succeeded met no later grant
  kept       who believes is not told that the lock is another's, or gone
  answered   each request has one answer, unless its server was killed; no
             client that waits is told to go before its time
"""
from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from history import (ACQUIRE, EXTEND, INSPECT, MS, RELEASE, Call, Span,
                     Violation)

INVARIANTS = ("exclusion", "rising", "own", "kept", "answered")
LOST = ("not_owner", "lock_not_found")
UNAVAILABLE = {"503 no_quorum", "503 validity_exhausted", "503 overloaded",
               "503 shutting_down"}
TIME_UP = {"409 lock_held", "503 no_quorum", "503 validity_exhausted"}
ANSWERS = {
    ACQUIRE: UNAVAILABLE | {"201 ", "409 lock_held"},
    EXTEND: UNAVAILABLE | {"200 ", "404 lock_not_found", "409 not_owner",
                           "409 max_hold_reached"},
    RELEASE: UNAVAILABLE | {"200 ", "404 lock_not_found", "409 not_owner"},
    INSPECT: UNAVAILABLE | {"200 ", "404 lock_not_found"},
}


@dataclass
class Lock:
    """A grant and all that its client did with it."""
    id: int
    grant: Call | None = None  # None: too old to be remembered
    later: list[Call] = field(default_factory=list)

    def beliefs(self) -> Iterator[tuple[int, int, Call]]:
        """From, until, by which answer."""
        released = min((call.sent for call in self.later
                        if call.op == RELEASE), default=None)
        answers = [self.grant] if self.grant else []
        answers += [call for call in self.later if call.op == EXTEND]
        for call in answers:
            end = call.end if released is None else min(call.end, released)
            if call.is_won and end > call.done:
                yield call.done, end, call


def group(calls: Iterable[Call]) -> dict[str, list[Lock]]:
    """The locks of each resource."""
    locks: dict[tuple[str, int], Lock] = {}
    for call in calls:
        if not call.of:
            continue
        lock = locks.setdefault((call.resource, call.of), Lock(call.of))
        if call.op == ACQUIRE:
            lock.grant = call
        else:
            lock.later.append(call)
    by_resource: dict[str, list[Lock]] = defaultdict(list)
    for (resource, _), lock in locks.items():
        by_resource[resource].append(lock)
    return by_resource


def check_exclusion(resource: str, locks: list[Lock]) -> Iterator[Violation]:
    beliefs = sorted(((begin, end, lock.id, call) for lock in locks
                      for begin, end, call in lock.beliefs()),
                     key=lambda belief: belief[:3])
    open_now: list[tuple[int, int, Call]] = []
    for begin, end, lock_id, call in beliefs:
        open_now = [one for one in open_now if one[0] > begin]
        for other_end, other_id, other in open_now:
            if other_id != lock_id:
                both = (min(end, other_end) - begin) / MS
                yield Violation(
                    "exclusion", f"for {both:.3f} ms both [{other}] and "
                    f"[{call}]", begin, resource)
        open_now.append((end, lock_id, call))


def check_rising(resource: str, grants: list[Call], highest: int,
                 forgotten: int) -> Iterator[Violation]:
    """highest: of the grants that were answered before forgotten."""
    by_done = sorted(grants, key=lambda call: call.done)
    before, best = 0, None
    for call in sorted(grants, key=lambda call: call.sent):
        while by_done[before].done < call.sent:
            if best is None or by_done[before].number > best.number:
                best = by_done[before]
            before += 1
        if best and best.number >= call.number:
            yield Violation("rising", f"[{best}] and then [{call}]", call.sent,
                            resource)
        elif call.sent > forgotten and highest >= call.number:
            yield Violation("rising", f"{highest} and then [{call}]",
                            call.sent, resource)
    numbers: dict[int, Call] = {}
    for call in grants:
        if numbers.setdefault(call.number, call) is not call:
            yield Violation("rising", f"[{numbers[call.number]}] has the "
                            f"number of [{call}]", call.sent, resource)


def met(locks: list[Lock], op: str) -> Iterator[tuple[Lock, Call, Call]]:
    """Calls that succeeded although somebody else was granted the lock between
    the grant and the call: lock, call, the other's grant."""
    by_sent = sorted((lock.grant for lock in locks
                      if lock.grant and lock.grant.is_won),
                     key=lambda call: call.sent)
    sent = [call.sent for call in by_sent]
    for lock in locks:
        for call in lock.later:
            if call.op != op or not call.is_won or not lock.grant:
                continue
            first = bisect_left(sent, lock.grant.done)
            for other in by_sent[first:bisect_left(sent, call.sent)]:
                if other.of != lock.id and other.done < call.sent:
                    yield lock, call, other
                    break


def check_own(resource: str, locks: list[Lock]) -> Iterator[Violation]:
    for lock, call, other in met(locks, EXTEND):
        yield Violation("own", f"[{call}] of [{lock.grant}], but between "
                        f"[{other}]", call.sent, resource)


def late_releases(calls: list[Call]) -> set[int]:
    """Calls that deleted what was left of a lock that had ended. Allowed: one
    node is enough for that, say one whose clock was set back."""
    return {call.id for locks in group(calls).values()
            for _, call, _ in met(locks, RELEASE)}


def check_kept(resource: str, locks: list[Lock]) -> Iterator[Violation]:
    for lock in locks:
        for call in lock.later:
            if call.code not in LOST or not call.done:
                continue
            if any(other.op == RELEASE and other.sent < call.sent
                   for other in lock.later):
                continue
            answers = [lock.grant] if lock.grant else []
            answers += [one for one in lock.later if one.op == EXTEND]
            for one in answers:
                if one.is_won and one.done <= call.sent and call.done < one.end:
                    left = (one.end - call.done) / MS
                    yield Violation(
                        "kept", f"[{call}], {left:.1f} ms before the end of "
                        f"[{one}]", call.sent, resource)
                    break


def check_answered(calls: Iterable[Call],
                   kills: Iterable[Span]) -> Iterator[Violation]:
    kills = list(kills)
    for call in calls:
        if not call.done or call.code == "vanished":
            continue
        if call.status:
            answer = f"{call.status} {call.code}"
            is_early = call.done - call.sent < call.wait_ms * MS
            if answer not in ANSWERS[call.op] or (is_early and
                                                  answer in TIME_UP):
                yield Violation("answered", f"[{call}]", call.sent,
                                call.resource)
            continue
        was_killed = call.code in ("closed", "refused") and any(
            span.server == call.server and
            span.overlaps(call.opened or call.sent, call.done)
            for span in kills)
        if not was_killed:
            yield Violation("answered", f"[{call}]", call.sent, call.resource)


def check(calls: list[Call], kills: Iterable[Span] = (),
          highest: Mapping[str, int] | None = None,
          forgotten: int = 0) -> list[Violation]:
    """Everything that a list of calls violates. Equal texts: the same one."""
    found = list(check_answered(calls, kills))
    for resource, locks in group(calls).items():
        grants = [lock.grant for lock in locks
                  if lock.grant and lock.grant.is_won]
        found += check_exclusion(resource, locks)
        found += check_rising(resource, grants,
                              (highest or {}).get(resource, 0), forgotten)
        found += check_own(resource, locks)
        found += check_kept(resource, locks)
    return found
