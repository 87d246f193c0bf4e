"""Feeds the look at the nodes; imported by selftest.py, and with a real node by
tooltest.py."""
from __future__ import annotations

from collections.abc import Callable

from calm import Window
from history import EXTEND, FORCE, MS, RELEASE, SECOND, SHARED, Call
from nodes import Node, Redis
from script import BASE, Script
from spread import Held, compare, held_locks, lacks, read

LONG = 5000  # ms
NUMBER = 1795221641865000


def _due(write: Callable[[Script], object], at_ms: float,
         window: Window | None = None) -> list[int]:
    """Numbers of those that must be everywhere at that moment."""
    script = Script()
    write(script)
    window = window or Window(BASE)
    return [one.number for one in held_locks(
        script.calls, window, BASE + int(at_ms * MS), lambda call: SECOND)]


def granted(s: Script) -> Call:
    return s.grant(0, 1, 7, LONG)


def extended(s: Script) -> None:
    s.call(EXTEND, 500, 501, validity=LONG, lock=granted(s))


def extend_without_answer(s: Script) -> None:
    s.call(EXTEND, 500, 501, 503, "no_quorum", lock=granted(s))


def extend_under_way(s: Script) -> None:
    s.call(EXTEND, 500, 501, validity=LONG, lock=granted(s)).done = 0


def released(s: Script) -> None:
    s.call(RELEASE, 900, 901, 0, "vanished", lock=granted(s))


def forced(s: Script) -> None:
    granted(s)
    call = s.call(FORCE, 900, 901)
    call.number = 7


def downgraded(s: Script) -> None:
    s.call(EXTEND, 5, 6, validity=LONG, lock=granted(s)).mode = SHARED


def repeated(s: Script) -> None:
    s.keyed(0, 1, 7).validity_ms = LONG
    s.keyed(5, 6, 0, 0, "vanished")


def test_due() -> None:
    assert _due(granted, 1000) == [] and _due(granted, 1300) == [7]
    assert _due(granted, 5002) == [], "it has ended"
    assert _due(extended, 1300) == [] and _due(extended, 1800) == [7]
    assert _due(extend_without_answer, 1300) == []
    assert _due(extend_without_answer, 1800) == [7]
    for write in (extend_under_way, released, forced, downgraded, repeated):
        assert _due(write, 3000) == [], write.__name__
    assert _due(granted, 3000, Window(BASE + 500 * MS)) == [], "before it"
    slow = Window(BASE, late=100 * MS)
    assert _due(granted, 1700, slow) == [] and _due(granted, 1800, slow) == [7]
    still = Window(BASE, stills=[(BASE + 200 * MS, BASE + 500 * MS)])
    assert _due(granted, 1700, still) == [] and _due(granted, 1800, still) == [7]


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
    has = {"a": f"{NUMBER}.", "b": f"{NUMBER}."}
    assert not compare([held], {"node0": has, "node1": has}, 0)
    [found] = compare([held], {"node0": has, "node1": has | {"b": "nothing"}}, 0)
    assert found.invariant == "spread" and "node1 b" in found.text, found


def test_read(node: Node) -> None:
    """What a real node has."""
    redis = Redis(node, 10)
    try:
        redis.ask("SET", "a", f"{NUMBER}.xyz", "PX", "60000")
        redis.ask("ZADD", "b", "99999999999999", f"{NUMBER}~xyz", "1",
                  f"{NUMBER + 1}~gone")
        redis.ask("HSET", "c", "x", "1")
        assert read(node, ["a", "b", "c", "d"]) == {
            "a": f"{NUMBER}.", "b": f"~{NUMBER}~", "c": "other",
            "d": "nothing"}
    finally:
        redis.close()


TESTS = (test_due, test_lacks, test_compare)
