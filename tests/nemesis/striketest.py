# SPDX-License-Identifier: MIT
"""Tests of when strikes come, for selftest.py."""
from __future__ import annotations

from functools import cache

from plan import (KINDS, Fault, clash, plan, quarantine_s, timeouts_ms)

STRIKES = {name for name in KINDS if KINDS[name].is_alone}
LOSSES = {name for name in STRIKES if KINDS[name].is_lossy}


@cache
def strikes_of(seed: int) -> tuple[list[Fault], list[Fault]]:
    """Of a plan with all faults; and all others in it."""
    faults = plan(seed, 600, set(KINDS), quarantine_s(2000))
    strikes = [one for one in faults if one.kind in STRIKES]
    return strikes, [one for one in faults if one.kind not in STRIKES]


def test_alone() -> None:
    """However long they take; and they leave most of the time to others."""
    for seed in range(20):
        strikes, others = strikes_of(seed)
        assert not any(clash(strike, other) for strike in strikes
                       for other in others)
        assert len(others) > 3 * len(strikes) >= 21, seed
    for kind in STRIKES:
        assert clash(Fault(kind, 5, 7, 1), Fault("drop", 6, 8, pairs=((2, 2),)))


def test_majority() -> None:
    """One server reaches three nodes, and the one that forgets is one of them."""
    for seed in range(20):
        for strike in strikes_of(seed)[0]:
            if strike.kind not in LOSSES:
                continue
            servers, nodes = map(set, zip(*strike.pairs))
            assert len(servers) == 1 and len(nodes) == 2, strike
            assert strike.target not in nodes, strike


def test_turns() -> None:
    """Each kind comes soon, where a call may outlast another server's patience."""
    for seed in range(20):
        kinds = [strike.kind for strike in strikes_of(seed)[0]]
        assert kinds[0] == "calm", seed
        is_equal = len(set(timeouts_ms(seed))) == 1
        assert set(kinds[:12]) == STRIKES - (
            {"under-way"} if is_equal else set()), seed


def test_slowest() -> None:
    """It is the call of a server that waits longest which is overtaken."""
    for seed in range(20):
        for strike in strikes_of(seed)[0]:
            [server] = {server for server, _ in strike.pairs}
            if strike.kind == "under-way":
                assert timeouts_ms(seed)[server] == max(timeouts_ms(seed))
