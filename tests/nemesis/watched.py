# SPDX-License-Identifier: MIT
"""What watchers must have been told.

  watched  nothing older is told after something newer, by the fencing tokens;
           and in calm times, who holds a lock for more than a second is told to
           each watcher that is there
"""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator

from calm import Window
from checker import Answered, Lock, group
from history import EXCLUSIVE, MS, SECOND, WATCH, Call, Violation
from watchers import told

GAP = 150 * MS  # between two watches of one that stays


def watches(calls: Iterable[Call]) -> dict[str, list[Call]]:
    """Of each single resource, in the order in which they were sent."""
    found: dict[str, list[Call]] = defaultdict(list)
    for call in calls:
        if call.op == WATCH and len(call.resources) == 1:
            found[call.resources[0]].append(call)
    for its in found.values():
        its.sort(key=lambda call: call.sent)
    return found


def check_order(resource: str, its: list[Call]) -> Iterator[Violation]:
    numbered = [call for call in its if call.done and told(call).isdigit()]
    before = Answered(numbered)
    for call in numbered:
        newer = before.above(call.number, call.sent)
        if newer:
            yield Violation("watched", f"[{newer}] and then [{call}]",
                            call.sent, resource)


def holds_until(lock: Lock, resource: str) -> int:
    """As an exclusive lock, without a break, for all that is known."""
    until = 0
    for begin, end, _, mode in lock.beliefs(resource):
        if mode == EXCLUSIVE and (not until or begin <= until):
            until = max(until, end)
    return until


def stays(session: list[Call], begin: int, due: int) -> bool:
    """A watcher that was there all the time."""
    if session[0].sent > begin:
        return False
    for one, two in zip(session, session[1:]):
        if one.sent <= due and two.sent >= begin and \
                (not one.done or two.sent - one.done > GAP):
            return False
    last = session[-1]
    end = last.sent if last.code == "vanished" else last.done
    return not last.done or end >= due


def check_told(resource: str, locks: list[Lock], its: list[Call],
               window: Window, judged: list[int]) -> Iterator[Violation]:
    """judged: counts, of watchers that had to be told."""
    sessions: dict[int, list[Call]] = defaultdict(list)
    for call in its:
        sessions[call.session].append(call)
    for lock in locks:
        grant = lock.grant
        if not grant or not grant.is_won or grant.sent < window.begin or \
                len(lock.same) > 1:
            continue
        due = window.deadline(grant.done, SECOND)
        if due > min(holds_until(lock, resource), window.end):
            continue
        for session in sessions.values():
            if not stays(session, grant.done, due):
                continue
            judged[0] += 1
            is_told = any(call.after == str(grant.number) or
                          (told(call) == str(grant.number) and
                           call.done <= due) for call in session)
            if not is_told:
                late = (due - grant.done) / MS
                yield Violation("watched", f"[{grant}] was not told within "
                                f"{late:.0f} ms to [{session[-1]}]",
                                grant.sent, resource)


def check_watched(calls: Collection[Call], windows: Iterable[Window],
                  judged: list[int]) -> list[Violation]:
    by_resource, locks = watches(calls), group(calls)
    found: list[Violation] = []
    for resource, its in by_resource.items():
        found += check_order(resource, its)
        for window in windows:
            found += check_told(resource, locks.get(resource, []), its, window,
                                judged)
    return found
