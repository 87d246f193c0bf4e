# SPDX-License-Identifier: MIT
"""Feeds the look at the nodes; imported by selftest.py, and with a real node by
tooltest.py."""
from __future__ import annotations

from calm import Window
from history import MS, SECOND, SHARED
from nodes import Node, Redis
from script import BASE, scenes
from spread import (Held, compare, held_locks, is_due, lacks, note_others,
                    read)

NUMBER = 1795221641865000

HISTORIES = scenes("""
granted:
    grant 0..1 #7 validity_ms=5000
extended:
    one = grant 0..1 #7 validity_ms=5000
    extend one 500..501 validity_ms=5000
extend without answer:
    one = grant 0..1 #7 validity_ms=5000
    extend one 500..501 503 no_quorum
extend under way:
    one = grant 0..1 #7 validity_ms=5000
    extend one 500..
released:
    one = grant 0..1 #7 validity_ms=5000
    release one 900..901 0 vanished
forced:
    grant 0..1 #7 validity_ms=5000
    force 900..901 #7
downgraded:
    one = grant 0..1 #7 validity_ms=5000
    extend one 5..6 validity_ms=5000 mode=shared
repeated:
    keyed 0..1 #7 validity_ms=5000
    keyed 5..6 0 vanished
""")


def _due(name: str, at_ms: float, window: Window | None = None) -> list[int]:
    """Numbers of those that must be everywhere at that moment."""
    window, at = window or Window(BASE), BASE + int(at_ms * MS)
    return [one.number for one in held_locks(
        HISTORIES[name].play().calls, window, at, lambda call: SECOND)
        if is_due(one, window, at)]


def test_due() -> None:
    assert _due("granted", 1000) == [] and _due("granted", 1300) == [7]
    assert _due("granted", 5002) == [], "it has ended"
    assert _due("extended", 1300) == [] and _due("extended", 1800) == [7]
    assert _due("extend without answer", 1300) == []
    assert _due("extend without answer", 1800) == [7]
    for name in ("extend under way", "released", "forced", "downgraded",
                 "repeated"):
        assert _due(name, 3000) == [], name
    assert _due("granted", 3000, Window(BASE + 500 * MS)) == [], "before it"
    slow = Window(BASE, late=100 * MS)
    assert _due("granted", 1700, slow) == []
    assert _due("granted", 1800, slow) == [7]
    still = Window(BASE, stills=[(BASE + 200 * MS, BASE + 500 * MS)])
    assert _due("granted", 1700, still) == []
    assert _due("granted", 1800, still) == [7]


def test_lacks() -> None:
    writer = Held(1, NUMBER, "exclusive", ("r",), "", 0)
    reader = Held(1, NUMBER, SHARED, ("r",), "", 0)
    mine, others = f"{NUMBER}", f"{NUMBER + 1}"
    for state in (f"{mine}.", f"{others}.", f"~{others}~", "other"):
        assert not lacks(writer, state), state
    for state in (f"~{mine}~", f"~{others}~ {mine}~", f"{others}.", "other"):
        assert not lacks(reader, state), state
    for held in (writer, reader):
        assert lacks(held, "nothing")
    assert lacks(reader, "~") and lacks(reader, f"~{others}~")


def test_compare() -> None:
    """One node is enough, and each of several resources counts."""
    held = Held(1, NUMBER, "exclusive", ("a", "b"), "", 0)
    has, late = {"a": f"{NUMBER}.", "b": f"{NUMBER}."}, SECOND
    window = Window(0)
    assert not compare([held], {"node0": has, "node1": has}, window, late)
    states = {"node0": has, "node1": has | {"b": "nothing"}}
    [found] = compare([held], states, window, late)
    assert found.invariant == "spread" and "node1 b" in found.text, found


def _missing_at(held: Held, looks: list[tuple[int, str]]) -> list[int]:
    """What a node has at these ms: when it is said to lack the lock."""
    window, found = Window(0), []
    for at_ms, state in looks:
        states = {"node0": {"a": state}}
        note_others([held], states, window, at_ms * MS)
        if compare([held], states, window, at_ms * MS):
            found.append(at_ms)
    return found


def test_others() -> None:
    """From when something else has gone, the lock has its time anew."""
    reader = Held(1, NUMBER, SHARED, ("a",), "", 0, 0, SECOND)
    writer = Held(1, NUMBER, "exclusive", ("a",), "", 0, 0, SECOND)
    ats = (200, 2000, 2200, 3400, 3500)
    for held, other in ((writer, "~"), (writer, f"{NUMBER + 1}."),
                        (reader, f"{NUMBER + 1}."), (reader, "other")):
        states = [other, other, "nothing", "nothing", "nothing"]
        assert _missing_at(held, list(zip(ats, states))) == [3500], other
        states[3] = other  # another one
        assert _missing_at(held, list(zip(ats, states))) == [], other
    for held, own in ((writer, f"{NUMBER}."), (reader, f"~{NUMBER}~")):
        states = [own, own, "nothing", "nothing", "nothing"]
        assert _missing_at(held, list(zip(ats, states))) == [2200, 3400, 3500]
        states = ["nothing"] * 5
        assert _missing_at(held, list(zip(ats, states))) == [2000, 2200, 3400,
                                                             3500]


def test_read(node: Node) -> None:
    """What a real node has."""
    with Redis(node, 10) as redis:
        redis.ask("SET", "a", f"{NUMBER}.xyz", "PX", "60000")
        redis.ask("ZADD", "b", "99999999999999", f"{NUMBER}~xyz", "1",
                  f"{NUMBER + 1}~gone")
        redis.ask("HSET", "c", "x", "1")
        assert read(node, ["a", "b", "c", "d"]) == {
            "a": f"{NUMBER}.", "b": f"~{NUMBER}~", "c": "other",
            "d": "nothing"}
