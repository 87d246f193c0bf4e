# SPDX-License-Identifier: MIT
"""Feeds the check of watches with histories; imported by selftest.py."""
from __future__ import annotations

from calm import LATEST, SLACK, TIMES, Metronome, Window
from history import MS, SECOND
from script import BASE, Script, scenes
from watched import check_watched

CALM = Window(BASE, BASE + 10 * SECOND, 0, True)

HISTORIES = scenes("""
told at once:
    grant 100..102 #1 validity_ms=5000
    watch 0..150 #1
    watch 151..4000 #1 after=1
knew it:
    watch 0..101 #1 -- before its client was answered
    grant 100..103 #1 validity_ms=5000
    watch 102.. after=1
not told: watched
    grant 100..102 #1 validity_ms=5000
    watch 0..4000 #1
told of another: watched
    grant 100..102 #2 validity_ms=5000
    watch 0..150 #1
    watch 151..4000 #1 after=1
still not told: watched
    grant 100..102 #1 validity_ms=5000
    watch 0..
one of two not told: watched
    grant 100..102 #1 validity_ms=5000
    watch 0..150 #1
    watch 151..4000 #1 after=1
    watch 50..4000 #1 session=2
told until it left:
    grant 100..102 #1 validity_ms=5000
    watch 0..800 0 vanished
came later:
    grant 100..102 #1 validity_ms=5000
    watch 800..4000 #1
was away:
    grant 100..102 #1 validity_ms=5000
    watch 0..50
    watch 700..4000 #1
too short:
    one = grant 100..102 #1 validity_ms=5000
    watch 0..4000
    release one 900..902
older after newer: watched
    watch 0..10 #7
    watch 11..20 #6 session=2
older meanwhile:
    watch 0..10 #7
    watch 9..20 #6 session=2
""")


def test_watched() -> None:
    for name, scene in HISTORIES.items():
        found = check_watched(scene.play().calls, [CALM], [0])
        assert {one.invariant for one in found} == scene.found, f"{name}: {found}"


def test_counted() -> None:
    """Those of whom the check could have said that they were not told."""
    for name, count in (("told at once", 1), ("one of two not told", 2),
                        ("came later", 0), ("too short", 0)):
        judged = [0]
        check_watched(HISTORIES[name].play().calls, [CALM], judged)
        assert judged == [count], name


def test_load() -> None:
    """A machine that is late gets more time, and not for ever."""
    s = Script("grant 100..102 #1 validity_ms=5000", "watch 0..1900 #1")
    slow = Window(BASE, BASE + 10 * SECOND, 150 * MS, True)
    assert check_watched(s.calls, [CALM], [0])
    assert not check_watched(s.calls, [slow], [0])
    still = Window(BASE, BASE + 10 * SECOND, 0, True,
                   [(BASE + 300 * MS, BASE + 800 * MS)])
    assert not check_watched(s.calls, [still], [0])
    untold = HISTORIES["not told"].play().calls
    assert check_watched(untold, [slow], [0])
    assert check_watched(untold, [still], [0])
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
