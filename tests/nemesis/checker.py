# SPDX-License-Identifier: MIT
"""Proves or refutes, from calls alone, what redlockd promises.

A client believes in its lock from the moment it read the answer until the
moment it sent the request + elapsed_ms + validity_ms, or until it sends the
release. An extension prolongs it. What was not answered may have happened.

An exclusive lock is a shared one from the moment its client asks for that,
whatever the answer is.

A forced release ends the locks that it names from the moment it is sent, on
the resources that it names; with all, each shared one that was asked for before
it was answered. Of a lock on several, the others remain believed in.

A lock over several resources is a lock on each of them. Grants with one key for
the same resources are one client's: a newer one ends the older token, which
then releases nothing. The key with other resources is another lock.

  exclusion  no two clients believe in one resource at once, unless both locks
             are shared; nor is a lock that is believed in granted to its own
             client as if it were free, unless it asked twice at once for a
             shared one, or another repeat may have taken its place
  rising     who was answered before another asked has the lower number, unless
             both locks are shared
  capacity   a permit has as many slots of the pool as were asked for, below the
             limit; no two clients believe in one of them, says exclusion
  own        an extension that succeeded met no later grant, say a repeat, but
             those beside a shared lock; it is not of an exclusive lock that was
             made a shared one
  kept       who believes is not told that the lock is another's, or gone;
             unless a repeat may have taken its place, or it is extended as an
             exclusive one after it was to become a shared one
  answered   each request has one answer, unless its server was killed; no
             client that waits is told to go before its time, unless another
             request with its key on its server was still under way, and both
             are for a shared lock: one is granted then; 200 for an acquire is
             for those that asked with its key before
  forced     as kept, of a lock that was asked for when a forced release of its
             resource had been answered
  rights     who may not gets 401 or 403, or 503 of a server that stops, and
             no lock by that; that it does not end a lock of others is among
             kept
"""
from __future__ import annotations

from bisect import bisect_left
from itertools import accumulate
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from history import (ABOVE, ACQUIRE, EVERY, EXCLUSIVE, EXTEND, FORCE, FREE,
                     INSPECT, LIST, LOOK, MS, PAGE, POOL, SECOND,
                     RELEASE, SHARED, STRANGER, TRESPASS, UPGRADE, WATCH, Call,
                     Span, Violation)
from wants import SLOT

INVARIANTS = ("exclusion", "rising", "capacity", "own", "kept", "forced",
              "answered", "rights")
UNTOLD_S = 15  # for which a forced release without an answer may go on
RECENT_S = 3   # after a forced release, what breaks is laid at its door
LOST = ("not_owner", "lock_not_found")
STOPPED = "503 shutting_down"  # it comes before any other answer
ATTEMPT_MS = 40  # servers wait longer before they try again
UNAVAILABLE = {"503 no_quorum", "503 validity_exhausted", "503 overloaded",
               STOPPED}
TIME_UP = {"409 lock_held", "503 no_quorum", "503 validity_exhausted"}
ANSWERS = {
    ACQUIRE: UNAVAILABLE | {"200 ", "201 ", "409 lock_held"},
    EXTEND: UNAVAILABLE | {"200 ", "404 lock_not_found", "409 not_owner",
                           "409 max_hold_reached"},
    RELEASE: UNAVAILABLE | {"200 ", "404 lock_not_found", "409 not_owner"},
    INSPECT: UNAVAILABLE | {"200 "},
    STRANGER: {"401 unauthorized", STOPPED},
    TRESPASS: {"403 forbidden", STOPPED},
    LOOK: UNAVAILABLE | {"200 "},
    UPGRADE: {"409 upgrade_refused"},
    FORCE: UNAVAILABLE | {"200 ", "404 lock_not_found", "409 not_owner"},
    WATCH: UNAVAILABLE | {"200 "},
    POOL: UNAVAILABLE | {"200 "},
    LIST: UNAVAILABLE | {"200 "},
    PAGE: {"200 ", "503 "},
}
OF_RIGHTS = (STRANGER, TRESPASS, LOOK)
NEVER = 1 << 62


@dataclass
class Lock:
    """A grant and all that its client did with it."""
    id: int
    grant: Call | None = None  # None: too old to be remembered
    later: list[Call] = field(default_factory=list)
    number: int = 0
    # with the same key, this one among them
    same: list[Lock] = field(default_factory=list)
    # resources, and since when it may have been taken from them by force
    forced: dict[str, int] = field(default_factory=dict)

    def add(self, call: Call) -> None:
        self.number = self.number or call.number
        if call.op == ACQUIRE:
            self.grant = call
        else:
            self.later.append(call)

    @property
    def shared_since(self) -> int:
        """Its client relies on no more than a shared lock from then on. This,
        too, goes for older grants."""
        if self.grant and self.grant.mode == SHARED:
            return 0
        return min((call.sent for lock in self.same for call in lock.later
                    if call.mode == SHARED and call.number >= self.number),
                   default=NEVER)

    def note_force(self, force: Call) -> None:
        """It may have been the end of this lock, on these resources."""
        if force.number:
            # a repeat whose answer nobody has may have that number
            is_meant = force.number == self.number or \
                force.number > self.number and any(
                    lock.number in (0, force.number) for lock in self.same
                    if lock is not self)
        else:
            end = force.done if force.status else \
                (force.done or NEVER) + UNTOLD_S * SECOND
            is_meant = self.shared_since < end and \
                (not self.grant or self.grant.sent < end)
        if is_meant:
            for name in force.resources:
                self.forced[name] = min(force.sent, self.forced.get(name, NEVER))

    def beliefs(self, resource: str) -> Iterator[tuple[int, int, Call, str]]:
        """From, until, by which answer, in which mode. A release also ends
        older grants."""
        released = min((call.sent for lock in self.same for call in lock.later
                        if call.op == RELEASE and call.number >= self.number),
                       default=NEVER)
        released = min(released, self.forced.get(resource, NEVER))
        answers = [self.grant] if self.grant else []
        answers += [call for call in self.later if call.op == EXTEND]
        since = self.shared_since
        for call in answers:
            end = min(call.end, released)
            change = max(call.done, min(end, since))
            if call.is_won and change > call.done:
                yield call.done, change, call, EXCLUSIVE
            if call.is_won and end > change:
                yield change, end, call, SHARED

    def may_be_repeated(self, before: int, but: Lock | None = None) -> bool:
        """By a request, but that one, which was sent before that moment, and
        not answered before this lock was asked for."""
        return any(it is not self and it is not but and it.grant and
                   it.grant.sent < before and
                   not (self.grant and it.grant.status and
                        it.grant.done < self.grant.sent) for it in self.same)


def group(calls: Collection[Call]) -> dict[str, list[Lock]]:
    """The locks of each resource."""
    locks: dict[int, Lock] = {}
    by_resource: dict[str, list[Lock]] = defaultdict(list)
    by_key: dict[tuple[str, object], list[Lock]] = defaultdict(list)
    for call in calls:
        if not call.of:
            continue
        if call.of not in locks:
            lock = locks[call.of] = Lock(call.of)
            lock.same = by_key[call.key, call.pool or call.resources] \
                if call.key else []
            lock.same.append(lock)
            for name in call.resources:
                by_resource[name].append(lock)
        locks[call.of].add(call)
    for force in forces(calls):
        for name in force.resources:
            for lock in by_resource.get(name, ()):
                lock.note_force(force)
    return by_resource


def forces(calls: Iterable[Call]) -> list[Call]:
    return [call for call in calls if call.op == FORCE]


def is_repeat_of(newer: Lock, older: Lock) -> bool:
    """Asked for with the same key when the older one was answered."""
    return newer is not older and newer.same is older.same and \
        newer.grant is not None and older.grant is not None and \
        older.grant.is_won and older.grant.done < newer.grant.sent


def are_apart(one: Lock, other: Lock, modes: tuple[str, str]) -> bool:
    """Whether it is wrong that both are believed in, each in its mode."""
    are_shared = modes == (SHARED, SHARED)
    if one.same is not other.same:
        return not are_shared
    newer = max(one, other, key=lambda lock: lock.number)
    older = other if newer is one else one
    if one is other or newer.grant is None or newer.grant.status != 201:
        return False
    # nothing is left of a reader whom a repeat has replaced that is lost itself,
    # or an attempt of this one that came late
    return not are_shared or (
        is_repeat_of(newer, older) and
        newer.grant.elapsed_ms < ATTEMPT_MS and
        not older.may_be_repeated(newer.grant.done, newer))


def check_exclusion(resource: str, locks: list[Lock]) -> Iterator[Violation]:
    beliefs = sorted(((begin, end, lock, call, mode) for lock in locks
                      for begin, end, call, mode in lock.beliefs(resource)),
                     key=lambda belief: (*belief[:2], belief[2].id))
    open_now: list[tuple[int, Lock, Call, str]] = []
    for begin, end, lock, call, mode in beliefs:
        open_now = [one for one in open_now if one[0] > begin]
        for other_end, its, other, its_mode in open_now:
            if are_apart(lock, its, (mode, its_mode)):
                both = (min(end, other_end) - begin) / MS
                yield Violation(
                    "exclusion", f"for {both:.3f} ms both [{other}], {its_mode},"
                    f" and [{call}], {mode}", begin, resource)
        open_now.append((end, lock, call, mode))


def most_readers(calls: Collection[Call]) -> int:
    """That believed in one resource at once."""
    most = 0
    for name, locks in group(calls).items():
        ends: list[int] = []
        # the extensions of one lock are one reader
        readers = sorted((min(one[0] for one in its), max(one[1] for one in its))
                         for lock in locks
                         if (its := [one for one in lock.beliefs(name)
                                     if one[3] == SHARED]))
        for begin, end in readers:
            ends = [one for one in ends if one > begin] + [end]
            most = max(most, len(ends))
    return most


def check_rising(resource: str, grants: list[Call],
                 highest: Mapping[tuple[str, str], int],
                 forgotten: int) -> Iterator[Violation]:
    """highest: of the grants that were answered before forgotten."""
    by_done = sorted(grants, key=lambda call: call.done)
    before = 0
    best: dict[str, Call] = {}  # of each mode
    for call in sorted(grants, key=lambda call: call.sent):
        while by_done[before].done < call.sent:
            it = by_done[before]
            best[it.mode] = max(it, best.get(it.mode, it),
                                key=lambda call: call.number)
            before += 1
        for mode in ABOVE[call.mode]:
            number = highest.get((resource, mode), 0)
            if mode in best and best[mode].number >= call.number:
                yield Violation("rising", f"[{best[mode]}] and then [{call}]",
                                call.sent, resource)
            elif call.sent > forgotten and number >= call.number:
                yield Violation("rising", f"{number} and then [{call}]",
                                call.sent, resource)
    numbers: dict[int, Call] = {}
    for call in grants:
        other = numbers.setdefault(call.number, call)
        if other is not call and EXCLUSIVE in (call.mode, other.mode):
            yield Violation("rising", f"[{other}] has the number of [{call}]",
                            call.sent, resource)


class Answered:
    """Grants, to find the highest of those that were answered before."""

    def __init__(self, grants: Iterable[Call]) -> None:
        by_done = sorted(grants, key=lambda call: call.done)
        self.done = [call.done for call in by_done]
        self.best = list(accumulate(by_done, lambda one, other: max(
            one, other, key=lambda call: call.number)))

    def above(self, number: int, moment: int) -> Call | None:
        before = bisect_left(self.done, moment)
        found = self.best[before - 1] if before > 0 else None
        return found if found and found.number > number else None


def met(locks: list[Lock], op: str) -> Iterator[tuple[Lock, Call, Call]]:
    """Calls that succeeded although a grant that may not stand beside theirs had
    been made before, with a higher number: lock, call, that grant."""
    won = [lock.grant for lock in locks if lock.grant and lock.grant.is_won]
    every = Answered(won)
    writers = Answered(call for call in won if call.mode == EXCLUSIVE)
    known = {lock.id for lock in locks}
    for lock in locks:
        since = lock.shared_since
        repeats = Answered(other.grant for other in lock.same if other.grant and
                           other.grant.is_won and other.id in known and
                           is_repeat_of(other, lock))
        for call in lock.later:
            if call.op != op or not call.is_won:
                continue
            was_alone = call.sent if call.op == EXTEND and \
                call.mode == EXCLUSIVE else min(call.sent, since)
            other = every.above(lock.number, was_alone) or \
                writers.above(lock.number, call.sent) or \
                repeats.above(lock.number, call.sent)
            if other:
                yield lock, call, other


def check_own(resource: str, locks: list[Lock]) -> Iterator[Violation]:
    for lock, call, other in met(locks, EXTEND):
        yield Violation("own", f"[{call}] of [{lock.grant}], but between "
                        f"[{other}]", call.sent, resource)
    for lock in locks:
        shared = min((call.done for call in lock.later if call.op == EXTEND and
                      call.mode == SHARED and call.is_won), default=NEVER)
        for call in lock.later:
            if call.op == EXTEND and call.mode == EXCLUSIVE and call.is_won and \
                    call.sent > shared:
                yield Violation("own", f"[{call}], but it had become a shared "
                                "lock", call.sent, resource)


def late_releases(calls: list[Call]) -> set[int]:
    """Calls that deleted what was left of a lock that had ended. Allowed: one
    node is enough for that, say one whose clock was set back."""
    return {call.id for locks in group(calls).values()
            for _, call, _ in met(locks, RELEASE)}


def check_kept(resource: str, locks: list[Lock],
               forced: Collection[Call] = ()) -> Iterator[Violation]:
    """forced: all forced releases."""
    for lock in locks:
        for call in lock.later:
            if call.code not in LOST or not call.done:
                continue
            if call.op == EXTEND and call.mode == EXCLUSIVE and \
                    lock.shared_since < call.sent:
                continue  # with a token that may have ended
            if any(sent < call.done for sent in lock.forced.values()):
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
                    before = force_before(lock, call, forced)
                    yield Violation(
                        "forced" if before else "kept", f"[{call}], "
                        f"{left:.1f} ms before the end of [{one}]" +
                        (f", after [{before}]" if before else ""),
                        call.sent, resource)
                    break


def force_before(lock: Lock, call: Call,
                 forced: Iterable[Call]) -> Call | None:
    """What was released by force, and answered, before the lock was asked for,
    not long before that call."""
    if not lock.grant:
        return None
    return next((force for force in forced if force.status == 200 and
                 force.done < lock.grant.sent and
                 force.done > call.done - RECENT_S * SECOND and
                 set(force.resources) & set(lock.grant.resources)), None)


def check_capacity(calls: Iterable[Call]) -> Iterator[Violation]:
    for call in calls:
        if not call.limit or not call.is_won:
            continue
        slots = {int(name.rpartition(SLOT)[2]) for name in call.resources}
        if len(slots) != call.permits or max(slots) >= call.limit:
            yield Violation("capacity", f"[{call}] of {call.permits} below "
                            f"{call.limit}", call.sent, call.resources[0])


def may_be_replaced(call: Call, beside: list[Call]) -> bool:
    """A reader that waits, by another one with its key on its server, which may
    wait there although its client has left."""
    return call.mode == SHARED and call.code == "lock_held" and any(
        other is not call and other.server == call.server and
        other.mode == SHARED and other.resources == call.resources and
        other.sent < call.done and
        (not other.status or other.done > call.sent) for other in beside)


def check_answered(calls: Collection[Call],
                   kills: Iterable[Span]) -> Iterator[Violation]:
    kills = list(kills)
    keyed: dict[str, list[Call]] = {}
    for call in calls:
        if call.op == ACQUIRE and call.key:
            keyed.setdefault(call.key, []).append(call)
    for call in calls:
        if not call.done or call.code == "vanished":
            continue
        if call.status:
            answer = f"{call.status} {call.code}"
            is_early = call.op == ACQUIRE and \
                call.done - call.sent < call.wait_ms * MS
            is_new = call.op == ACQUIRE and not call.is_repeat
            is_known = call.op == WATCH and call.version == call.after and \
                call.done - call.sent < call.wait_ms * MS
            is_let_in = call.op == LOOK and call.version not in ("", FREE)
            is_ended = answer == "410 cursor_expired" and \
                call.op == LIST and call.resources[0] != EVERY
            if is_ended:
                continue  # of the list to which a cursor belongs
            if answer not in ANSWERS[call.op] or \
                    (is_early and answer in TIME_UP and not may_be_replaced(
                        call, keyed.get(call.key, []))) or \
                    (is_new and call.status == 200) or is_known or is_let_in:
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
          highest: Mapping[tuple[str, str], int] | None = None,
          forgotten: int = 0) -> list[Violation]:
    """Everything that a list of calls violates. Equal texts: the same one."""
    found = list(check_answered(calls, kills))
    found += check_capacity(calls)
    forced = forces(calls)
    for resource, locks in group(calls).items():
        grants = [lock.grant for lock in locks
                  if lock.grant and lock.grant.is_won]
        found += check_exclusion(resource, locks)
        found += check_rising(resource, grants, highest or {}, forgotten)
        found += check_own(resource, locks)
        found += check_kept(resource, locks, forced)
    return found
