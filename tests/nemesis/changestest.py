# SPDX-License-Identifier: MIT
"""Tests of changes.py and of when changes come: alone, for selftest.py; and
what a name's two machines share, for tooltest.py.
"""
from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

from changes import WRONG_EPOCHS, limit_ms, mistake
from cluster import NAMES, Cluster
from plan import (KINDS, MAX_TTLS_MS, MISTAKES, NODES, OTHER_NAMES, Fault,
                  clash, plan, quarantine_s)

PLACES = [0, 6, 2, 3, 9]  # two names have moved


def test_mistakes() -> None:
    """Each is one in what it is called after, and right in all else."""
    for seed in range(50):
        found = {kind: mistake(kind, PLACES, random.Random(seed))
                 for kind in MISTAKES}
        wrong = {kind: sum(a != b for a, b in zip(one.places, PLACES))
                 for kind, one in found.items()}
        assert wrong == {"wrong-epoch": 0, "wrong-address": 1,
                         "wrong-addresses": 3, "swapped": 2}, wrong
        for kind, one in found.items():
            assert len(set(one.places)) == NODES, "a server under two names"
            assert not one.ahead or kind == "wrong-epoch"
            strangers = {place for place in one.places if place >= 2 * NODES}
            assert len(strangers) == (wrong[kind] if "address" in kind else 0)


def test_other_names() -> None:
    """A majority of the old names, which is one of the new ones, too, or none;
    machines that no name led to; and each list is one that a server may
    have."""
    for kind in OTHER_NAMES:
        lists = set()
        for seed in range(200):
            one = mistake(kind, PLACES, random.Random(seed))
            assert one.ahead == 1
            assert one.takes_over == (kind == "take-over")
            old = set(one.names) & set(NAMES)
            assert (len(old) > NODES // 2) == (kind == "new-names")
            assert len(old) > len(one.names) // 2 or kind != "new-names"
            assert len(set(one.places)) == len(one.places) == \
                len(set(one.names)) == len(one.names) > 2
            for name, place in zip(one.names, one.places):
                is_old = name in NAMES
                assert place == PLACES[NAMES.index(name)] if is_old else \
                    place >= 2 * NODES
            lists.add((len(old), len(one.names)))
        assert lists == ({(3, 3), (3, 4), (3, 5), (4, 5)}
                         if kind == "new-names" else
                         {(1, 3), (1, 4), (2, 3), (2, 4), (2, 5)}), lists


def test_epochs() -> None:
    drawn = {mistake("wrong-epoch", PLACES, random.Random(seed)).ahead
             for seed in range(20)}
    assert drawn == set(WRONG_EPOCHS)


def test_limits() -> None:
    """Each that is allowed, and none that a key could outlive the run by."""
    for limits in ((2000, 2000, 2000), (5000, 2000, 5000), (8000, 2000, 5000)):
        drawn = {limit_ms(Fault("limits", 0, 1, amount=i / 100), limits)
                 for i in range(100)}
        assert drawn == {one for one in MAX_TTLS_MS if one <= max(limits)}


def test_restarts() -> None:
    """Nobody else starts or stops the servers meanwhile, or moves that node."""
    for kind in ("move", "astray", "limits"):
        change = Fault(kind, 5, 7, 2 if kind != "limits" else -1)
        for other in (Fault("server-kill", 6, 8, 1), Fault("sleep-all", 6, 8),
                      Fault("server-pause", 6, 8, 0), Fault("move", 6, 8, 4)):
            assert clash(change, other) and clash(other, change), other
            assert not clash(change, replace(other, begin=8, end=9))
        for other in (Fault("cut", 6, 8, pairs=((1, 2),)), Fault("flush", 6, 6),
                      Fault("server-clock", 6, 8, 1), Fault("swapped", 6, 8)):
            assert not clash(change, other), other
    quiet, limits = Fault("quiet", 6, 8), Fault("limits", 5, 7)
    assert clash(quiet, limits) and not clash(quiet, Fault("move", 5, 7, 1))
    assert clash(Fault("swapped", 5, 7), Fault("wrong-epoch", 6, 8)), "one port"
    glitch = Fault("glitch", 5, 6, 3, ((1, 3),), amount=0.1)
    assert clash(glitch, Fault("move", 5, 7, 1)), "who saw it must live"


def test_short() -> None:
    """No name leads to two machines for as long as would take it away."""
    drawn: Counter[str] = Counter()
    for seed in range(20):
        for fault in plan(seed, 300, set(KINDS), quarantine_s(2000)):
            drawn[fault.kind] += 1
            if KINDS[fault.kind].restarts:
                assert fault.end - fault.begin <= 6, fault
    assert min(drawn[kind] for kind in (*MISTAKES, "move", "astray",
                                        "limits")) > 20, drawn



# ---- with real nodes --------------------------------------------------------

def test_both_machines(cluster: Cluster) -> None:
    """What befalls a node befalls the machine that its name may lead to: the
    way to it, and the clock."""
    node = cluster.nodes[1]
    other = cluster.other_machine(1)
    other.start()
    other.wait_until_ready()
    cluster.proxy.tell("stall", 2, 1, 1, 1)
    cluster.proxy.sync()
    links = [cluster.connect(2, machine) for machine in (node, other)]
    for link in links:
        link.sendall(b"PING\r\n")
        link.settimeout(0.1)
        try:
            assert not link.recv(10), "not stalled"
        except TimeoutError:
            pass
    cluster.proxy.tell("stall", 2, 1, 1, 0)
    for link in links:
        link.settimeout(10)
        assert link.recv(10) == b"+PONG\r\n"
        link.close()
    assert node.clock is other.clock and node.address != other.address
    other.kill()
