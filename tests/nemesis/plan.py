"""Which fault comes when: made from the seed alone, before anything runs.

A node that forgets (kill-empty, kill-everysec, kill-old, flush) or whose clock
misbehaves (step, race) has to be kept away by redlockd for a quarantine. So
these come to at most two nodes within one; all others come freely.
"""
from __future__ import annotations

import math
import random
from dataclasses import dataclass

NODES, SERVERS = 5, 3
LOSSY_NODES = 2
MARGIN_S = 3.0  # a fault may come late, and be noticed late


@dataclass(frozen=True)
class Kind:
    weight: float
    target: str        # node, clock, server, server-clock, pairs, ring, client
    shortest_s: float
    longest_s: float
    is_lossy: bool = False


KINDS: dict[str, Kind] = {
    "pause": Kind(3, "node", 0.05, 30),
    "kill-empty": Kind(2, "node", 0.05, 5, is_lossy=True),
    "kill-everysec": Kind(1, "node", 0.05, 5, is_lossy=True),
    "kill-old": Kind(1, "node", 0.5, 5, is_lossy=True),
    "kill-always": Kind(3, "node", 0.05, 5),
    "flush": Kind(2, "node", 0, 0, is_lossy=True),
    "client-pause": Kind(1, "node", 0.05, 5),
    "script": Kind(1, "node", 0.1, 2),
    "maxmemory": Kind(1, "node", 0.5, 10),
    "maxclients": Kind(1, "node", 0.5, 10),
    "step": Kind(2, "clock", 0.5, 6, is_lossy=True),
    "race": Kind(1, "clock", 0.5, 6, is_lossy=True),
    "slew": Kind(1, "clock", 2, 20),
    "server-clock": Kind(1, "server-clock", 0.5, 20),
    "server-pause": Kind(2, "server", 0.05, 4),
    "server-kill": Kind(2, "server", 0.05, 3),
    "ring": Kind(4, "ring", 0.5, 8),
    "cut": Kind(3, "pairs", 0.05, 20),
    "drop": Kind(2, "pairs", 0.05, 20),
    "delay": Kind(2, "pairs", 0.5, 15),
    "slice": Kind(1, "pairs", 0.5, 10),
    "hold": Kind(2, "pairs", 0.05, 10),
    "reset": Kind(1, "pairs", 0, 0),
    "half-close": Kind(1, "pairs", 0, 0),
    # done by clients all the time: a call that is not waited for, on a fresh
    # connection, or on one that brought answers before; and a connection that
    # is reset although its answer was read
    "vanish": Kind(0, "client", 0, 0),
    "vanish-again": Kind(0, "client", 0, 0),
    "rude": Kind(0, "client", 0, 0),
}
ON_DEMAND = {"rude"}  # redlockd takes it for a grant that was not read
MODES = ("always", "always", "always", "everysec", "none")
NEEDS_MODE = {"kill-always": "always", "kill-old": "always",
              "kill-everysec": "everysec"}
ALL = set(KINDS) - ON_DEMAND
HARMLESS = {name for name in ALL if not KINDS[name].is_lossy}


@dataclass(frozen=True)
class Fault:
    kind: str
    begin: float                # seconds from the start
    end: float
    target: int = -1            # node or server
    pairs: tuple[tuple[int, int], ...] = ()  # server, node
    way: int = 0                # 0 to the node, 1 from the node
    amount: float = 0           # of clocks: seconds or rate; of delays: ms


def modes(seed: int) -> tuple[str, ...]:
    """How each node keeps its data."""
    rng = random.Random(f"{seed} modes")
    return tuple(rng.sample(MODES, NODES))


def quarantine_s(max_ttl_ms: int, node_timeout_ms: int = 50) -> float:
    """How long redlockd keeps a node away that lost its memory (DESIGN, 7)."""
    window = max(max_ttl_ms / 4000, 1.0)
    return (max(max_ttl_ms * 1.01 / 1000, 4 * window) + 5 +
            node_timeout_ms / 1000 + 1)


def lossy_nodes(faults: list[Fault], begin: float, end: float) -> set[int]:
    """Nodes that forget or step at any moment between."""
    return {fault.target for fault in faults if KINDS[fault.kind].is_lossy
            and fault.begin <= end and fault.end >= begin}


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    if high <= low:
        return low
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _amount(rng: random.Random, kind: str) -> float:
    sign = rng.choice((-1, 1))
    if kind == "step":
        return sign * log_uniform(rng, 0.02, 20)
    if kind == "race":
        return sign * log_uniform(rng, 0.01, 0.5)
    if kind == "slew":
        return sign * log_uniform(rng, 0.0002, 0.004)
    if kind == "server-clock":
        return sign * log_uniform(rng, 0.02, 3600)
    if kind == "delay":
        return log_uniform(rng, 1, 300)
    return 0


def _target(rng: random.Random, name: str, of_nodes: tuple[str, ...]) -> int:
    if "server" in KINDS[name].target:
        return rng.randrange(SERVERS)
    mode = NEEDS_MODE.get(name)
    return rng.choice([n for n in range(NODES)
                       if mode in (None, of_nodes[n])])


def _pairs(rng: random.Random, kind: str) -> list[tuple[int, int]]:
    if kind == "ring":
        # each server sees three nodes, and no two servers the same three
        turn = rng.randrange(NODES)
        return [(s, (turn + 2 * s + 3 + i) % NODES)
                for s in range(SERVERS) for i in range(2)]
    if rng.random() < 0.5:  # what leaves a server with a bare quorum
        server = rng.randrange(SERVERS)
        return [(server, n) for n in rng.sample(range(NODES), 2)]
    return rng.sample([(s, n) for s in range(SERVERS) for n in range(NODES)],
                      rng.choice((1, 1, 2, 3)))


def _draw(rng: random.Random, kinds: list[str], at: float, last: float,
          of_nodes: tuple[str, ...]) -> Fault:
    name = rng.choices(kinds, [KINDS[one].weight for one in kinds])[0]
    kind = KINDS[name]
    length = log_uniform(rng, kind.shortest_s, kind.longest_s)
    target = _target(rng, name, of_nodes)
    pairs = _pairs(rng, name)
    way, amount = rng.randrange(2), _amount(rng, name)
    if kind.target in ("ring", "pairs"):
        return Fault(name, at, min(at + length, last), -1,
                     tuple(sorted(pairs)), way, amount)
    return Fault(name, at, min(at + length, last), target, (), way, amount)


def _is_allowed(fault: Fault, faults: list[Fault], quarantine: float) -> bool:
    kind = KINDS[fault.kind]
    for other in faults:  # one of a sort at a time
        if (KINDS[other.kind].target == kind.target and kind.target != "pairs"
                and other.target == fault.target
                and other.end + 0.5 > fault.begin
                and fault.end + 0.5 > other.begin):
            return False
    if not kind.is_lossy:
        return True
    apart = quarantine + MARGIN_S
    nodes = lossy_nodes(faults, fault.begin - apart, fault.end + apart)
    return len(nodes | {fault.target}) <= LOSSY_NODES


def _strike(rng: random.Random, ring: Fault, kinds: list[str], last: float,
            of_nodes: tuple[str, ...]) -> Fault | None:
    """A loss of the only node that two servers both see: what the quarantine
    is for. Left to chance alone they would meet too seldom."""
    seen = [{n for n in range(NODES) if (s, n) not in ring.pairs}
            for s in range(SERVERS)]
    pivots = {n for s in range(SERVERS) for n in seen[s] & seen[s - 1]
              if len(seen[s] & seen[s - 1]) == 1}
    lossy = [name for name in kinds if KINDS[name].is_lossy]
    if not lossy or rng.random() < 0.2:
        return None
    at = ring.begin + rng.uniform(0.1, 0.7) * (ring.end - ring.begin)
    for _ in range(10):
        fault = _draw(rng, lossy, at, last, of_nodes)
        if fault.target in pivots:
            return fault
    return None


def plan(seed: int, seconds: float, kinds: set[str],
         quarantine: float) -> list[Fault]:
    """All faults of a run, in order; each has ended when it is over."""
    rng = random.Random(f"{seed} faults")
    names = sorted(name for name in kinds if KINDS[name].weight)
    faults: list[Fault] = []
    at = rng.uniform(0.5, 1.5)
    while names and at < seconds:
        recent = [one for one in faults[-200:] if one.end > at - 60]
        for _ in range(10):
            fault = _draw(rng, names, at, seconds, modes(seed))
            if _is_allowed(fault, recent, quarantine):
                faults.append(fault)
                break
        if fault.kind == "ring" and fault is faults[-1]:
            strike = _strike(rng, fault, names, seconds, modes(seed))
            if strike and _is_allowed(strike, recent, quarantine):
                faults.append(strike)
        at += rng.uniform(1, 3)
    return sorted(faults, key=lambda fault: fault.begin)
