"""Proves or refutes, from calls alone, what redlockd promises.

A client believes in its lock from the moment it read the answer until the
moment it sent the request + elapsed_ms + validity_ms, or until it sends the
release. An extension prolongs it. What was not answered may have happened.

A lock over several resources is a lock on each of them. Grants with one key for
the same resources are one client's: a newer one ends the older token, which
then releases nothing. The key with other resources is another lock.

  exclusion  no two clients believe in one resource at once; nor is a lock that
             is believed in granted to its own client as if it were free
  rising     who was answered before another asked has the lower number
  own        an extension that succeeded met no later grant, say a repeat
  kept       who believes is not told that the lock is another's, or gone;
             unless a repeat may have taken its place
  answered   each request has one answer, unless its server was killed; no
             client that waits is told to go before its time; 200 for an
             acquire is for those that asked with its key before
  rights     who may not gets 401 or 403, and no lock by that; that it does not
             end a lock of others is among kept
"""
from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from history import (ACQUIRE, EXTEND, INSPECT, LOOK, MS, RELEASE, STRANGER,
                     TRESPASS, Call, Span, Violation)

INVARIANTS = ("exclusion", "rising", "own", "kept", "answered", "rights")
LOST = ("not_owner", "lock_not_found")
UNAVAILABLE = {"503 no_quorum", "503 validity_exhausted", "503 overloaded",
               "503 shutting_down"}
TIME_UP = {"409 lock_held", "503 no_quorum", "503 validity_exhausted"}
ANSWERS = {
    ACQUIRE: UNAVAILABLE | {"200 ", "201 ", "409 lock_held"},
    EXTEND: UNAVAILABLE | {"200 ", "404 lock_not_found", "409 not_owner",
                           "409 max_hold_reached"},
    RELEASE: UNAVAILABLE | {"200 ", "404 lock_not_found", "409 not_owner"},
    INSPECT: UNAVAILABLE | {"200 ", "404 lock_not_found"},
    STRANGER: {"401 unauthorized"},
    TRESPASS: {"403 forbidden"},
    LOOK: UNAVAILABLE | {"404 lock_not_found"},
}
OF_RIGHTS = (STRANGER, TRESPASS, LOOK)


@dataclass
class Lock:
    """A grant and all that its client did with it."""
    id: int
    grant: Call | None = None  # None: too old to be remembered
    later: list[Call] = field(default_factory=list)
    number: int = 0
    # with the same key, this one among them
    same: list[Lock] = field(default_factory=list)

    def add(self, call: Call) -> None:
        self.number = self.number or call.number
        if call.op == ACQUIRE:
            self.grant = call
        else:
            self.later.append(call)

    def beliefs(self) -> Iterator[tuple[int, int, Call]]:
        """From, until, by which answer. A release also ends older grants."""
        released = min((call.sent for lock in self.same for call in lock.later
                        if call.op == RELEASE and call.number >= self.number),
                       default=None)
        answers = [self.grant] if self.grant else []
        answers += [call for call in self.later if call.op == EXTEND]
        for call in answers:
            end = call.end if released is None else min(call.end, released)
            if call.is_won and end > call.done:
                yield call.done, end, call


    def may_be_repeated(self, before: int) -> bool:
        """By a request that was sent before that moment, and not answered
        before this lock was asked for."""
        return any(it is not self and it.grant and it.grant.sent < before and
                   not (self.grant and it.grant.status and
                        it.grant.done < self.grant.sent) for it in self.same)


def group(calls: Iterable[Call]) -> dict[str, list[Lock]]:
    """The locks of each resource."""
    locks: dict[int, Lock] = {}
    by_resource: dict[str, list[Lock]] = defaultdict(list)
    by_key: dict[tuple[str, tuple[str, ...]], list[Lock]] = defaultdict(list)
    for call in calls:
        if not call.of:
            continue
        if call.of not in locks:
            lock = locks[call.of] = Lock(call.of)
            lock.same = by_key[call.key, call.resources] if call.key else []
            lock.same.append(lock)
            for name in call.resources:
                by_resource[name].append(lock)
        locks[call.of].add(call)
    return by_resource


def are_apart(one: Lock, other: Lock) -> bool:
    """Whether it is wrong that both are believed in."""
    if one.same is not other.same:
        return True
    newer = max(one, other, key=lambda lock: lock.number)
    return one is not other and newer.grant is not None and \
        newer.grant.status == 201


def check_exclusion(resource: str, locks: list[Lock]) -> Iterator[Violation]:
    beliefs = sorted(((begin, end, lock, call) for lock in locks
                      for begin, end, call in lock.beliefs()),
                     key=lambda belief: (*belief[:2], belief[2].id))
    open_now: list[tuple[int, Lock, Call]] = []
    for begin, end, lock, call in beliefs:
        open_now = [one for one in open_now if one[0] > begin]
        for other_end, its, other in open_now:
            if are_apart(lock, its):
                both = (min(end, other_end) - begin) / MS
                yield Violation(
                    "exclusion", f"for {both:.3f} ms both [{other}] and "
                    f"[{call}]", begin, resource)
        open_now.append((end, lock, call))


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
    """Calls that succeeded although a higher number was granted before: lock,
    call, that grant."""
    by_done = sorted((lock.grant for lock in locks
                      if lock.grant and lock.grant.is_won),
                     key=lambda call: call.done)
    done = [call.done for call in by_done]
    best = list(accumulate(by_done, lambda one, other: max(
        one, other, key=lambda call: call.number)))
    for lock in locks:
        for call in lock.later:
            before = bisect_left(done, call.sent)
            if call.op == op and call.is_won and before > 0 and \
                    best[before - 1].number > lock.number:
                yield lock, call, best[before - 1]


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
                   for other in lock.later) or \
                    lock.may_be_repeated(call.done):
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
            is_new = call.op == ACQUIRE and not call.is_repeat
            if answer not in ANSWERS[call.op] or \
                    (is_early and answer in TIME_UP) or \
                    (is_new and call.status == 200):
                yield Violation("rights" if call.op in OF_RIGHTS else
                                "answered", f"[{call}]", call.sent,
                                call.resources[0])
            continue
        was_killed = call.code in ("closed", "refused") and any(
            span.server == call.server and
            span.overlaps(call.opened or call.sent, call.done)
            for span in kills)
        if not was_killed:
            yield Violation("answered", f"[{call}]", call.sent,
                            call.resources[0])


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
