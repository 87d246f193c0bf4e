"""Feeds the checker with histories made by hand: each violation must be found,
and nothing in what is allowed. Runs at the start of every run, and alone.
"""
from __future__ import annotations

import contextlib
import io
from dataclasses import replace

from changestest import TESTS as OF_CHANGES
from checker import check, late_releases
from drawntest import TESTS as OF_DRAWN
from history import MS, History, Violation
from identities import NARROW, WIDE
from jobs import together
from kepttest import TESTS as OF_KEPT
from permitstest import TESTS as OF_PERMITS
from plan import (KINDS, NEEDS_MODE, PEER_MODES, Fault, clash, lossy_nodes,
                  modes, plan, quarantine_s, takes_locks)
from register import Register, refused
from script import BASE, HISTORIES, Script
from sharedtest import TESTS as OF_SHARED
from spreadtest import TESTS as OF_SPREAD
from striketest import TESTS as OF_STRIKES
from watchtest import TESTS as OF_WATCHES


def names(found: list[Violation]) -> set[str]:
    return {violation.invariant for violation in found}


def test_histories() -> None:
    for name, scene in HISTORIES.items():
        script = scene.play()
        found = names(check(script.calls, script.spans))
        assert found == scene.found, f"{name}: {found}"


def test_late_releases() -> None:
    script = HISTORIES["released after another"].play()
    assert late_releases(script.calls) == {script.calls[2].id}


def test_forgotten() -> None:
    """A number that falls below one which was forgotten."""
    script, history = Script("grant 0..1 #7 validity_ms=10",
                             "grant 100..101 #6 validity_ms=10"), History()
    history.calls = script.calls
    history.forget(BASE + 50 * MS)
    assert len(history.calls) == 1
    found = names(check(history.snapshot(), (), history.highest,
                        history.forgotten))
    assert found == {"rising"}, found


def test_forgotten_repeat() -> None:
    """It took the place of a lock about which there are later calls."""
    script, history = Script("one = keyed 0..1 #1", "keyed 10..11 #2 200",
                             "extend one 20..21 409 not_owner"), History()
    history.calls = script.calls
    history.forget(BASE + 15 * MS)
    found = names(check(history.snapshot(), (), history.highest,
                        history.forgotten))
    assert not found, found


def test_snapshot() -> None:
    """Clients go on while the checker looks."""
    script, history = Script("one = grant 0..1 #1", "grant 20..21 #2"), History()
    two = script.calls[1]
    two.done = 0
    history.calls = script.calls
    seen = history.snapshot()
    script.write("release one 10..11")
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


def test_jobs() -> None:
    """What a thread raises is raised where it is waited for."""
    done: list[int] = []
    together([lambda: done.append(1)] * 2)
    assert done == [1, 1]
    with contextlib.redirect_stderr(io.StringIO()) as told:
        try:
            together([lambda: done.append(1), lambda: unknown])  # noqa: F821
        except RuntimeError as error:
            assert "unknown" in str(error) and "NameError" in told.getvalue()
            return
    raise AssertionError("nobody noticed")


def run() -> int:
    """The number of tests; raises if one fails."""
    tests = (test_histories, test_late_releases, test_snapshot, test_forgotten,
             test_forgotten_repeat,
             test_register, test_plan, test_needs, test_clashes,
             test_prefixes, test_jobs, *OF_KEPT, *OF_PERMITS, *OF_SHARED, *OF_STRIKES,
             *OF_CHANGES, *OF_DRAWN, *OF_WATCHES,
             *OF_SPREAD)
    for test in tests:
        test()
    return len(HISTORIES) + len(tests) - 1


if __name__ == "__main__":
    print(f"selftest: {run()} passed")
