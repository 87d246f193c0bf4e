"""Feeds the check of watches with histories; imported by selftest.py."""
from __future__ import annotations

from collections.abc import Callable

from calm import LATEST, SLACK, TIMES, Metronome, Window
from history import MS, RELEASE, SECOND, WATCH, Call
from script import BASE, Script
from watched import check_watched

LONG = 5000  # ms
CALM = Window(BASE, BASE + 10 * SECOND, 0, True)


def _watch(s: Script, sent: float, done: float, number: int, after: str = "free",
           session: int = 1) -> Call:
    """number: of which it is told; 0: that the lock is free."""
    call = s.call(WATCH, sent, done, 200 if number else 404,
                  "" if number else "lock_not_found", number=number)
    call.after, call.session = after, session
    if not done:
        call.done, call.status = 0, 0
    return call


def told_at_once(s: Script) -> None:
    s.grant(100, 102, 1, LONG)
    _watch(s, 0, 150, 1)
    _watch(s, 151, 4000, 1, "1")


def knew_it(s: Script) -> None:
    _watch(s, 0, 101, 1)  # before its client was answered
    s.grant(100, 103, 1, LONG)
    _watch(s, 102, 0, 0, "1")


def not_told(s: Script) -> None:
    s.grant(100, 102, 1, LONG)
    _watch(s, 0, 4000, 1)


def told_of_another(s: Script) -> None:
    s.grant(100, 102, 2, LONG)
    _watch(s, 0, 150, 1)
    _watch(s, 151, 4000, 1, "1")


def still_not_told(s: Script) -> None:
    s.grant(100, 102, 1, LONG)
    _watch(s, 0, 0, 0)


def one_of_two_not_told(s: Script) -> None:
    told_at_once(s)
    _watch(s, 50, 4000, 1, session=2)


def told_until_it_left(s: Script) -> None:
    s.grant(100, 102, 1, LONG)
    _watch(s, 0, 800, 0).code = "vanished"


def came_later(s: Script) -> None:
    s.grant(100, 102, 1, LONG)
    _watch(s, 800, 4000, 1)


def was_away(s: Script) -> None:
    s.grant(100, 102, 1, LONG)
    _watch(s, 0, 50, 0)
    _watch(s, 700, 4000, 1)


def too_short(s: Script) -> None:
    one = s.grant(100, 102, 1, LONG)
    _watch(s, 0, 4000, 0)
    s.call(RELEASE, 900, 902, lock=one)


def older_after_newer(s: Script) -> None:
    _watch(s, 0, 10, 7)
    _watch(s, 11, 20, 6, session=2)


def older_meanwhile(s: Script) -> None:
    _watch(s, 0, 10, 7)
    _watch(s, 9, 20, 6, session=2)


HISTORIES: list[tuple[Callable[[Script], None], bool]] = [
    (told_at_once, True), (knew_it, True), (not_told, False),
    (told_of_another, False), (still_not_told, False),
    (one_of_two_not_told, False), (told_until_it_left, True),
    (came_later, True), (was_away, True), (too_short, True),
    (older_after_newer, False), (older_meanwhile, True),
]


def test_watched() -> None:
    for write, is_right in HISTORIES:
        script = Script()
        write(script)
        found = check_watched(script.calls, [CALM], [0])
        assert {one.invariant for one in found} == \
            (set() if is_right else {"watched"}), f"{write.__name__}: {found}"


def test_counted() -> None:
    """Those of whom the check could have said that they were not told."""
    for write, count in ((told_at_once, 1), (one_of_two_not_told, 2),
                         (came_later, 0), (too_short, 0)):
        script, judged = Script(), [0]
        write(script)
        check_watched(script.calls, [CALM], judged)
        assert judged == [count], write.__name__


def test_load() -> None:
    """A machine that is late gets more time, and not for ever."""
    script = Script()
    s = script
    s.grant(100, 102, 1, LONG)
    _watch(s, 0, 1900, 1)
    slow = Window(BASE, BASE + 10 * SECOND, 150 * MS, True)
    assert check_watched(s.calls, [CALM], [0])
    assert not check_watched(s.calls, [slow], [0])
    still = Window(BASE, BASE + 10 * SECOND, 0, True,
                   [(BASE + 300 * MS, BASE + 800 * MS)])
    assert not check_watched(s.calls, [still], [0])
    script = Script()
    not_told(script)
    assert check_watched(script.calls, [slow], [0])
    assert check_watched(script.calls, [still], [0])
    slow.late = (LATEST - SLACK) // TIMES
    assert slow.is_judged
    slow.late += MS
    assert not slow.is_judged
    assert not Window(BASE, BASE + SECOND).is_judged, "a node had no vote"


def test_metronome() -> None:
    it = Metronome()
    it.late = [(10, 5), (20, 50), (30, 7)]
    assert it.worst(5, 15) == 5 and it.worst(15, 35) == 50
    assert it.worst(40, 50) == 0


TESTS = (test_watched, test_counted, test_load, test_metronome)
