# SPDX-License-Identifier: MIT
"""Feeds the checker with histories made by hand: each violation must be found,
and nothing in what is allowed. Runs at the start of every run, and alone.
"""
from __future__ import annotations

import argparse
import contextlib
import io
import sys
from dataclasses import replace
from inspect import signature
from types import SimpleNamespace

import changestest
import kept
import spreadtest
import striketest
import watchtest
from changes import ended
from checker import check, late_releases, most_readers
from drawn import DRAWN, PAGES, Drawn, asked
from history import ACQUIRE, MS, SHARED, Call, History, Violation
from identities import NARROW, WIDE
from jobs import together
from plan import (KINDS, NEEDS_MODE, PEER_MODES, Fault, clash, lossy_nodes,
                  modes, plan, quarantine_s, takes_locks)
from register import Register, refused
from script import BASE, HISTORIES, Script
from wants import Want, lock_id, slot_name


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


FORGOTTEN = (
    # when all before it is forgotten, how many calls are left, what is found
    (50, 1, {"rising"}, ["grant 0..1 #7 validity_ms=10",
                         "grant 100..101 #6 validity_ms=10"]),
    (50, 1, {"rising"}, ["grant 0..1 #7 validity_ms=10 mode=shared",
                         "grant 100..101 #6 validity_ms=10"]),
    (50, 1, {"rising"}, ["grant 0..1 #7 validity_ms=10",
                         "grant 100..101 #6 validity_ms=10 mode=shared"]),
    (50, 1, set(), ["grant 0..1 #7 validity_ms=10 mode=shared",
                    "grant 100..101 #6 validity_ms=10 mode=shared"]),
    # it took the place of a lock about which there are later calls
    (15, 3, set(), ["one = keyed 0..1 #1", "keyed 10..11 #2 200",
                    "extend one 20..21 409 not_owner"]),
    # a lock that is still extended is not forgotten: it has a mode
    (50, 3, set(), ["one = grant 0..1 #1 mode=shared",
                    "grant 60..61 #2 mode=shared",
                    "extend one 70..71 mode=shared"]),
    # a forced release is remembered as long as the lock that it ended
    (15, 5, set(), HISTORIES["forced"].lines),
    (60_000, 0, set(), HISTORIES["forced"].lines),
)


def test_forgotten() -> None:
    for before_ms, left, wanted, lines in FORGOTTEN:
        history = History()
        history.calls = Script(*lines).calls
        history.forget(BASE + before_ms * MS)
        found = names(check(history.snapshot(), (), history.highest,
                            history.forgotten))
        assert found == wanted, (lines, found)
        assert len(history.calls) == left, (lines, history.calls)


def test_most_readers() -> None:
    for name, count in (("readers", 3), ("reader and writer", 1)):
        assert most_readers(HISTORIES[name].play().calls) == count, name


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


def test_register_of_readers() -> None:
    register = Register("r")
    assert register.write(5, 1)
    assert register.read(7, SHARED) == 1 and register.read(6, SHARED) == 1
    assert register.read(6) is None and not register.write(6, 2)
    assert register.read(7) == 1 and register.write(8, 2)
    assert register.read(7, SHARED) is None and register.refusals == 3
    assert register.read(8, SHARED) == 2 and not register.check(0)


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


def test_ends() -> None:
    """Of a server that got SIGTERM."""
    server = SimpleNamespace(name="server1", last_line=lambda: "it said so")
    assert not ended(server, 0)
    for status in (1, 78, -6, -11, -15, -9):
        [found] = ended(server, status)
        assert found.invariant == "alive" and "it said so" in found.text
        assert len(ended(server, status, False)) == (status != -15)


def test_asked() -> None:
    assert asked("PUT /locks/a/extend HTTP/1.1\r\nX-Lock-Token: 1\r\n",
                 {"ttl_ms": 1}) == ("extendLock", {"X-Lock-Token", "ttl_ms"})
    assert asked("GET /locks/a?after=free&wait_ms=1 HTTP/1.1\r\n", None) == \
        ("getLock", {"after", "wait_ms"})
    assert asked("GET /readyz?verbose HTTP/1.1\r\n", None) == \
        ("getReadiness", {"verbose"})
    assert asked("DELETE /locks/a?force=all HTTP/1.1\r\n", None) == \
        ("releaseLock", {"force"})
    assert set(PAGES.values()) < set(DRAWN)


def test_missing() -> None:
    """What the table says and nobody asks is named."""
    drawn = Drawn()
    drawn.note("GET /nodes HTTP/1.1\r\n", None)
    drawn.note("POST /batch HTTP/1.1\r\n", {"operations": [{"id": "a"}]})
    missing = drawn.missing()
    assert "listNodes" not in missing and "runBatch" not in missing
    assert "runBatch operations.token" in missing and "getLiveness" in missing
    assert "runBatch operations.id" not in missing


KEPT = """# a comment

11 --tls  # exclusion: a node forgot
12 --seconds 40 --faults all,-step # tidy
"""
RUN = argparse.Namespace(seed=7, seconds=40.0, faults="all", tls=False,
                         clients=kept.CLIENTS, resources=kept.RESOURCES)


def test_kept() -> None:
    lines = kept.read(KEPT)
    assert lines == [["--seed", "11", "--tls"],
                     ["--seed", "12", "--seconds", "40", "--faults",
                      "all,-step"]], lines
    assert [kept.choose(lines, i) for i in (0, 1, 2)] == [*lines, lines[0]]
    assert kept.choose([], 5) == []
    assert isinstance(kept.read(kept.FILE.read_text()), list)


def test_kept_badly() -> None:
    """No line may pass for a comment."""
    for text in ("11 --tls", "seed 11 # why", "--tls # why", "11 #", "-3 # why"):
        try:
            kept.read(text)
        except SystemExit:
            continue
        raise AssertionError(text)


def test_advice() -> None:
    """What it says to add is a line that plays the same again."""
    text = kept.advice(RUN, True)
    assert "is new" in text and kept.replay(RUN) in text, text
    line = text.split("tests/nemesis/seeds: ")[1]
    assert kept.read(line) == [kept.replay(RUN).split()[1:]], line
    assert "is new" not in kept.advice(RUN, False)
    other = argparse.Namespace(**{**vars(RUN), "tls": True, "clients": 3})
    assert kept.replay(other).endswith("--clients 3 --resources 12 --tls")


def test_wishes() -> None:
    body = Want(("p",), "", "", 4, 2).body(Call(ACQUIRE, 0, 0, ("p",), 500))
    assert body == {"resource": "p", "ttl_ms": 500, "limit": 4, "permits": 2}
    assert lock_id((slot_name("p", 0),)) == "~cB8w"
    assert lock_id((slot_name("p", 0), slot_name("p", 1))) == "~~cB8wCnAfMQ"
    assert lock_id(("r1",)) == "r1"


def run() -> int:
    """The number of tests; raises if one fails."""
    tests = [test for module in (sys.modules[__name__], striketest, changestest,
                                 watchtest, spreadtest)
             for name, test in vars(module).items()
             if name.startswith("test_") and not signature(test).parameters]
    for test in tests:
        test()
    return len(HISTORIES) + len(tests) - 1


if __name__ == "__main__":
    print(f"selftest: {run()} passed")
