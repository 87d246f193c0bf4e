"""Feeds the checker with histories made by hand: each violation must be found,
and nothing in what is allowed. Runs at the start of every run, and alone.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from changestest import TESTS as OF_CHANGES
from checker import check, late_releases
from drawntest import TESTS as OF_DRAWN
from history import (ACQUIRE, EXTEND, LOOK, MS, RELEASE, STRANGER, TRESPASS,
                     History, Span, Violation)
from identities import NARROW, WIDE
from kepttest import TESTS as OF_KEPT
from permitstest import TESTS as OF_PERMITS
from plan import (KINDS, NEEDS_MODE, PEER_MODES, Fault, clash, lossy_nodes,
                  modes, plan, quarantine_s, takes_locks)
from register import Register, refused
from script import BASE, Script
from sharedtest import TESTS as OF_SHARED
from spreadtest import TESTS as OF_SPREAD
from striketest import TESTS as OF_STRIKES
from watchtest import TESTS as OF_WATCHES


def fine(s: Script) -> None:
    one = s.grant(0, 2, 1)
    s.call(EXTEND, 50, 51, validity=100, lock=one)
    s.call(RELEASE, 140, 145, lock=one)
    two = s.grant(140, 141, 2)
    s.call(EXTEND, 150, 151, 503, "no_quorum", lock=two)
    s.call(EXTEND, 245, 246, 404, "lock_not_found", lock=two)
    s.call(ACQUIRE, 240, 250, 409, "lock_held")
    three = s.grant(252, 253, 4)
    s.grant(251, 400, 3, 160)  # asked before three was answered
    s.call(RELEASE, 300, 301, 0, "vanished", lock=three)
    s.call(RELEASE, 302, 303, 404, "lock_not_found", lock=three)


def late_belief(s: Script) -> None:
    s.grant(0, 101, 1)  # read when nothing was left
    s.grant(50, 51, 2)


def two_holders(s: Script) -> None:
    s.grant(0, 1, 1)
    s.grant(90, 99, 2)


def two_by_extend(s: Script) -> None:
    one = s.grant(0, 1, 1)
    s.call(EXTEND, 90, 91, validity=100, lock=one)
    s.grant(150, 151, 2)


def two_by_old_validity(s: Script) -> None:
    one = s.grant(0, 1, 1)
    s.call(EXTEND, 2, 3, validity=10, lock=one)  # shortens the answer only
    s.grant(50, 51, 2)


def two_while_releasing_fails(s: Script) -> None:
    one = s.grant(0, 1, 1)
    s.call(EXTEND, 2, 3, 503, "no_quorum", lock=one)
    s.grant(50, 51, 2)
    s.call(RELEASE, 60, 70, 503, "no_quorum", lock=one)


def equal_numbers(s: Script) -> None:
    s.grant(0, 1, 7, 10)
    s.grant(0, 20, 7, 30)


def falling_numbers(s: Script) -> None:
    s.grant(0, 1, 7, 10)
    s.grant(30, 31, 9, 10)
    s.grant(60, 61, 8, 10)


def extended_after_another(s: Script) -> None:
    one = s.grant(0, 1, 1)
    two = s.grant(200, 201, 2)
    s.call(RELEASE, 210, 211, lock=two)
    s.call(EXTEND, 220, 221, validity=100, lock=one)


def released_after_another(s: Script) -> None:
    one = s.grant(0, 1, 1)
    s.grant(200, 201, 2)
    s.call(RELEASE, 400, 401, lock=one)


def extend_not_found(s: Script) -> None:
    one = s.grant(0, 1, 1)
    s.call(EXTEND, 50, 51, 404, "lock_not_found", lock=one)


def release_not_owner(s: Script) -> None:
    one = s.grant(0, 1, 1)
    s.call(EXTEND, 90, 91, validity=100, lock=one)
    s.call(RELEASE, 150, 151, 409, "not_owner", lock=one)


def silent(s: Script) -> None:
    s.call(ACQUIRE, 0, 30000, 0, "timeout")


def closed(s: Script) -> None:
    s.call(ACQUIRE, 0, 10, 0, "closed", server=1)
    s.spans.append(Span("server-kill", "", BASE, BASE + MS, server=2))


def closed_by_kill(s: Script) -> None:
    s.call(ACQUIRE, 0, 10, 0, "closed", server=1)
    s.spans.append(Span("server-kill", "", BASE + 5 * MS, server=1))


def wrong_answer(s: Script) -> None:
    s.call(ACQUIRE, 0, 1, 404, "lock_not_found")


def waited(s: Script) -> None:
    s.grant(0, 300, 2).elapsed_ms = 290  # asked first, was second
    s.grant(10, 11, 1).wait_ms = 500
    s.call(ACQUIRE, 20, 520, 409, "lock_held").wait_ms = 500
    s.call(ACQUIRE, 20, 200, 503, "shutting_down").wait_ms = 500


def two_who_waited(s: Script) -> None:
    s.grant(0, 300, 2, 10).elapsed_ms = 295
    s.grant(150, 304, 3, 50).elapsed_ms = 150


def refused_too_soon(s: Script) -> None:
    s.call(ACQUIRE, 0, 499, 409, "lock_held").wait_ms = 500


def second_answer(s: Script) -> None:
    s.call(ACQUIRE, 0, 10, 0, "stray")


def several(s: Script) -> None:
    one = s.several("rs", 0, 1, 1)
    s.several("tu", 2, 3, 2)
    s.call(RELEASE, 10, 11, lock=one)
    two = s.several("r", 10, 11, 3)
    s.several("sv", 10, 11, 4)
    s.call(EXTEND, 20, 21, validity=100, lock=two)


def several_share_one(s: Script) -> None:
    s.several("rs", 0, 1, 1)
    s.several("st", 2, 3, 2)


def several_and_one(s: Script) -> None:
    s.several("s", 0, 1, 1)
    s.several("rst", 2, 3, 2)


def several_extended(s: Script) -> None:
    one = s.several("rs", 0, 1, 1)
    s.call(EXTEND, 90, 91, validity=100, lock=one)
    s.several("st", 150, 151, 2)


def several_fall(s: Script) -> None:
    s.several("rs", 0, 1, 5, 10)
    s.several("s", 20, 21, 4, 10)


def several_not_owner(s: Script) -> None:
    one = s.several("rs", 0, 1, 1)
    s.call(EXTEND, 50, 51, 409, "not_owner", lock=one)


def one_of_several_extended_late(s: Script) -> None:
    one = s.several("rs", 0, 1, 1)
    s.several("s", 200, 201, 2, 10)
    s.call(EXTEND, 220, 221, validity=100, lock=one)


def repeated(s: Script) -> None:
    one = s.keyed(0, 1, 1)
    s.keyed(2, 4, 0, 503, "no_quorum")
    two = s.keyed(5, 6, 2, 200)
    s.call(EXTEND, 10, 11, 409, "not_owner", lock=one)
    s.call(RELEASE, 12, 13, 404, "lock_not_found", lock=one)
    s.call(EXTEND, 14, 15, validity=500, lock=two)
    s.call(RELEASE, 20, 25, lock=two)
    s.grant(21, 22, 3)


def repeated_at_once(s: Script) -> None:
    one = s.keyed(0, 9, 1)
    s.keyed(0, 3, 2, 200)
    s.call(EXTEND, 10, 11, 409, "not_owner", lock=one)


def repeated_by_a_late_one(s: Script) -> None:
    s.keyed(0, 2, 0, 0, "vanished")
    one = s.keyed(3, 4, 1)
    s.call(EXTEND, 10, 11, 409, "not_owner", lock=one)


def repeat_that_falls(s: Script) -> None:
    s.keyed(0, 1, 2)
    s.keyed(2, 3, 1, 200)


def repeat_with_the_number(s: Script) -> None:
    s.keyed(0, 1, 2)
    s.keyed(2, 3, 2, 200)


def repeat_and_another(s: Script) -> None:
    s.keyed(0, 1, 1)
    s.keyed(2, 3, 2, 200)
    s.grant(4, 5, 3)


def repeat_ended_by_the_old_token(s: Script) -> None:
    one = s.keyed(0, 1, 1)
    s.keyed(2, 3, 2, 200)
    s.call(RELEASE, 10, 11, lock=one)
    s.grant(12, 13, 3)


def repeat_extended_by_the_old_token(s: Script) -> None:
    one = s.keyed(0, 1, 1)
    s.keyed(2, 3, 2, 200)
    s.call(EXTEND, 10, 11, validity=500, lock=one)


def repeat_undone(s: Script) -> None:
    s.keyed(0, 1, 1)
    s.keyed(2, 4, 0, 0, "vanished")
    s.grant(10, 11, 2)


def repeat_that_lost_its_lock(s: Script) -> None:
    s.keyed(0, 1, 0, 503, "no_quorum")  # answered before: no excuse
    one = s.keyed(2, 3, 1)
    s.call(EXTEND, 10, 11, 409, "not_owner", lock=one)


def repeat_as_if_it_were_free(s: Script) -> None:
    s.keyed(0, 1, 1)
    s.keyed(2, 3, 2)


def key_of_another_lock(s: Script) -> None:
    s.keyed(0, 1, 1)
    s.keyed(2, 3, 2, 200).resources = ("r", "s")


def repeat_without_a_first(s: Script) -> None:
    s.keyed(0, 1, 1, 200).is_repeat = False


def turned_away(s: Script) -> None:
    one = s.grant(0, 1, 1)
    s.call(STRANGER, 2, 3, 401, "unauthorized")
    s.call(TRESPASS, 4, 5, 403, "forbidden")
    s.call(TRESPASS, 6, 7, 0, "vanished")
    s.call(LOOK, 8, 9, 404, "lock_not_found")
    s.call(LOOK, 8, 9, 503, "no_quorum")
    s.call(STRANGER, 8, 9, 503, "shutting_down")
    s.call(TRESPASS, 8, 9, 503, "shutting_down")
    s.call(EXTEND, 10, 11, validity=100, lock=one)


def let_in(s: Script) -> None:
    s.call(STRANGER, 0, 1, 409, "lock_held")


def let_in_elsewhere(s: Script) -> None:
    s.call(TRESPASS, 0, 1, 201)


def got_it_nevertheless(s: Script) -> None:
    s.call(STRANGER, 0, 1, 0, "vanished")
    s.call(LOOK, 2, 3)


def turned_away_by_mistake(s: Script) -> None:
    s.call(ACQUIRE, 0, 1, 403, "forbidden")


def released_by_a_stranger(s: Script) -> None:
    one = s.grant(0, 1, 1)
    s.call(STRANGER, 2, 3, 401, "unauthorized")
    s.call(EXTEND, 10, 11, 404, "lock_not_found", lock=one)


HISTORIES: list[tuple[Callable[[Script], None], set[str]]] = [
    (fine, set()), (late_belief, set()),
    (two_holders, {"exclusion"}), (two_by_extend, {"exclusion"}),
    (two_by_old_validity, {"exclusion"}),
    (two_while_releasing_fails, {"exclusion"}),
    (equal_numbers, {"rising"}), (falling_numbers, {"rising"}),
    (extended_after_another, {"own"}), (released_after_another, set()),
    (extend_not_found, {"kept"}), (release_not_owner, {"kept"}),
    (silent, {"answered"}), (closed, {"answered"}), (closed_by_kill, set()),
    (waited, set()), (two_who_waited, {"exclusion"}),
    (refused_too_soon, {"answered"}), (second_answer, {"answered"}),
    (wrong_answer, {"answered"}),
    (several, set()), (several_share_one, {"exclusion"}),
    (several_and_one, {"exclusion"}), (several_extended, {"exclusion"}),
    (several_fall, {"rising"}), (several_not_owner, {"kept"}),
    (one_of_several_extended_late, {"own"}),
    (repeated, set()), (repeated_at_once, set()),
    (repeated_by_a_late_one, set()),
    (repeat_that_falls, {"rising", "exclusion"}),
    (repeat_with_the_number, {"rising"}), (repeat_and_another, {"exclusion"}),
    (repeat_ended_by_the_old_token, {"exclusion"}),
    (repeat_extended_by_the_old_token, {"own"}),
    (repeat_undone, {"exclusion"}), (repeat_that_lost_its_lock, {"kept"}),
    (repeat_as_if_it_were_free, {"exclusion"}),
    (key_of_another_lock, {"exclusion"}),
    (repeat_without_a_first, {"answered"}),
    (turned_away, set()), (let_in, {"rights"}), (let_in_elsewhere, {"rights"}),
    (got_it_nevertheless, {"rights"}), (turned_away_by_mistake, {"answered"}),
    (released_by_a_stranger, {"kept"}),
]


def names(found: list[Violation]) -> set[str]:
    return {violation.invariant for violation in found}


def test_histories() -> None:
    for write, expected in HISTORIES:
        script = Script()
        write(script)
        found = names(check(script.calls, script.spans))
        assert found == expected, f"{write.__name__}: {found}"


def test_late_releases() -> None:
    script = Script()
    released_after_another(script)
    assert late_releases(script.calls) == {script.calls[2].id}


def test_forgotten() -> None:
    """A number that falls below one which was forgotten."""
    script, history = Script(), History()
    script.grant(0, 1, 7, 10)
    script.grant(100, 101, 6, 10)
    history.calls = script.calls
    history.forget(BASE + 50 * MS)
    assert len(history.calls) == 1
    found = names(check(history.snapshot(), (), history.highest,
                        history.forgotten))
    assert found == {"rising"}, found


def test_snapshot() -> None:
    """Clients go on while the checker looks."""
    script, history = Script(), History()
    one = script.grant(0, 1, 1)
    two = script.grant(20, 0, 2)
    two.done = 0
    history.calls = script.calls
    seen = history.snapshot()
    script.call(RELEASE, 10, 11, lock=one)
    two.done = BASE + 21 * MS
    assert not check(seen) and not check(history.snapshot())


def test_register() -> None:
    register = Register("r")
    assert register.read(5) == 0 and register.read(6) == 0
    assert register.write(6, 1) and not register.write(5, 1)
    assert register.read(5) is None and not register.check(0)
    register.write(6, 1)
    assert names(register.check(0)) == {"register"}
    assert names(refused("r", 5, 1 << 62)) == {"register"}
    assert not refused("r", 5, 0)


def test_plan() -> None:
    """Not more than two nodes forget or step within a quarantine; nothing that
    would disturb the other comes at once; and nothing is left out."""
    drawn, quarantine = set(), quarantine_s(2000)
    for seed in range(20):
        faults = plan(seed, 300, set(KINDS), quarantine)
        assert faults == plan(seed, 300, set(KINDS), quarantine)
        for i, fault in enumerate(faults):
            drawn.add(fault.kind)
            assert 0 <= fault.begin <= fault.end <= 300, fault
            assert len(lossy_nodes(faults, fault.begin - quarantine,
                                   fault.begin)) <= 2, (seed, fault)
            assert not any(clash(fault, other) for other in faults[:i])
    assert drawn == {name for name in KINDS if KINDS[name].weight}


def test_needs() -> None:
    """A fault finds the files that it is about."""
    for seed in range(20):
        of_nodes = modes(seed)
        for fault in plan(seed, 300, set(KINDS), quarantine_s(2000)):
            needs = NEEDS_MODE.get(fault.kind, of_nodes)
            if fault.target >= 0 and KINDS[fault.kind].target == "node":
                assert of_nodes[fault.target] in needs, fault
            if fault.peer >= 0:
                assert of_nodes[fault.peer] in PEER_MODES[fault.kind], fault
                assert fault.peer != fault.target, fault


def test_clashes() -> None:
    """All of them, and none else."""
    glitch = Fault("glitch", 5, 6, 3, ((1, 3),), amount=0.1)
    sleep = Fault("sleep-all", 5, 6, 4)
    pause = Fault("pause", 6.2, 9, 3)
    assert takes_locks(glitch) and clash(glitch, pause)
    for other in (replace(pause, begin=6.6), replace(pause, target=2)):
        assert not clash(glitch, other), other
    for other in (Fault("cut", 5, 7, pairs=((1, 3),)), sleep,
                  Fault("server-pause", 5, 7, 1), Fault("step", 5, 7, 3)):
        assert clash(glitch, other) and clash(other, glitch), other
    for other in (Fault("cut", 5, 7, pairs=((1, 2), (2, 3))), Fault(
            "server-pause", 5, 7, 2), Fault("step", 5, 7, 2)):
        assert not clash(glitch, other), other
    for amount in (-1, 0.004):  # no lock ends too early by these
        assert not clash(replace(glitch, amount=amount), pause)
    for other in (pause, Fault("server-kill", 5, 7, 1),
                  Fault("suspend-all", 5, 7)):
        assert clash(sleep, other), other
    assert not clash(sleep, Fault("ring", 5, 7, pairs=((1, 3),)))


def test_prefixes() -> None:
    assert WIDE.may_ask(("r7", "x1")) and NARROW.may_ask(("r1", "r10"))
    assert not NARROW.may_ask(("r1", "r7")) and not NARROW.may_ask(("x1",))


def run() -> int:
    """The number of tests; raises if one fails."""
    tests = (test_histories, test_late_releases, test_snapshot, test_forgotten,
             test_register, test_plan, test_needs, test_clashes,
             test_prefixes, *OF_KEPT, *OF_PERMITS, *OF_SHARED, *OF_STRIKES,
             *OF_CHANGES, *OF_DRAWN, *OF_WATCHES,
             *OF_SPREAD)
    for test in tests:
        test()
    return len(HISTORIES) + len(tests) - 1


if __name__ == "__main__":
    print(f"selftest: {run()} passed")
