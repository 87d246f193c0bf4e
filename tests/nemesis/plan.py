# SPDX-License-Identifier: MIT
"""Which fault comes when: made from the seed alone, before anything runs.

What makes a node forget, or its clock misbehave (is_lossy), has to be found by
redlockd, which then keeps the node away for a quarantine. So these come to at
most two nodes within one; all others come freely.
"""
from __future__ import annotations

import math
import random
from dataclasses import dataclass, replace

NODES, SERVERS = 5, 3
LOSSY_NODES = 2
MARGIN_S = 3.0  # a fault may come late, and be noticed late
GAP_S = 0.5     # between two faults that would disturb each other


@dataclass(frozen=True)
class Kind:
    weight: float
    target: str        # node, clock, server, server-clock, pairs, ring, all,
    shortest_s: float  # client, servers, beside
    longest_s: float
    is_lossy: bool = False
    is_late: bool = False  # nothing is lost before its end
    is_alone: bool = False  # of strikes.py: nothing else is wrong meanwhile
    restarts: bool = False  # servers, one after the other


KINDS: dict[str, Kind] = {
    "pause": Kind(3, "node", 0.05, 30),
    "kill-empty": Kind(2, "node", 0.05, 5, is_lossy=True),
    "kill-everysec": Kind(2, "node", 0.05, 5, is_lossy=True),
    "kill-old": Kind(1, "node", 0.5, 5, is_lossy=True),
    "kill-always": Kind(3, "node", 0.05, 5),
    "flush": Kind(2, "node", 0, 0, is_lossy=True),
    "replica": Kind(2, "node", 0.002, 1, is_lossy=True),
    "peer-copy": Kind(1.5, "node", 0.05, 5, is_lossy=True),
    "old-copy": Kind(3, "node", 1, 8, is_lossy=True, is_late=True),
    "evict": Kind(2, "node", 0.05, 1, is_lossy=True),
    "aof-off": Kind(1.5, "node", 0.5, 6, is_lossy=True, is_late=True),
    "client-pause": Kind(1, "node", 0.05, 5),
    "script": Kind(1, "node", 0.1, 2),
    "maxmemory": Kind(1, "node", 0.5, 10),
    "maxclients": Kind(1, "node", 0.5, 10),
    "step": Kind(2, "clock", 0.5, 6, is_lossy=True),
    "race": Kind(1, "clock", 0.5, 6, is_lossy=True),
    "glitch": Kind(2, "clock", 0.001, 0.05, is_lossy=True),
    "slew": Kind(1, "clock", 2, 20),
    "server-clock": Kind(1, "server-clock", 0.5, 20),
    "server-pause": Kind(2, "server", 0.05, 4),
    "server-kill": Kind(2, "server", 0.05, 3),
    "server-term": Kind(2, "server", 0.05, 3),
    "still": Kind(2, "server", 0.1, 0.5),
    "suspend-all": Kind(1, "all", 0.05, 4),
    "sleep-all": Kind(2, "all", 0.05, 5, is_lossy=True),
    "quiet": Kind(2, "clients", 1, 8),
    "ring": Kind(6, "ring", 1, 10),
    "cut": Kind(3, "pairs", 0.05, 20),
    "drop": Kind(2, "pairs", 0.05, 20),
    "delay": Kind(2, "pairs", 0.5, 15),
    "lag": Kind(3, "pairs", 0.5, 15),
    "slice": Kind(1, "pairs", 0.5, 10),
    "hold": Kind(2, "pairs", 0.05, 10),
    "reset": Kind(1, "pairs", 0, 0),
    "half-close": Kind(1, "pairs", 0, 0),
    # each a moment that a rule is for, and that chance alone does not meet
    "untold": Kind(1, "node", 2, 4, is_lossy=True, is_late=True,
                   is_alone=True),
    "under-way": Kind(1, "node", 2, 4, is_lossy=True, is_late=True,
                      is_alone=True),
    # nothing at all is wrong, see calm.py
    "calm": Kind(1, "calm", 5, 6, is_alone=True),
    # what is changed, and mistaken, see changes.py. No name leads to two
    # machines for so long that it is taken from one that is in use
    "move": Kind(3, "node", 0.05, 6, is_lossy=True, restarts=True),
    "astray": Kind(2, "node", 0.5, 6, is_lossy=True, restarts=True),
    "limits": Kind(1.5, "servers", 1, 4, restarts=True),
    "wrong-epoch": Kind(1, "beside", 0.5, 6),
    "wrong-address": Kind(1, "beside", 0.5, 6),
    "wrong-addresses": Kind(1, "beside", 0.5, 6),
    "swapped": Kind(1, "beside", 0.5, 6),
    # the next configuration, see names.py
    "other-names": Kind(1, "beside", 1, 2, is_alone=True),
    "new-names": Kind(1, "beside", 1, 2, is_alone=True),
    "take-over": Kind(1, "beside", 1, 2, is_alone=True),
    "undisturbed": Kind(1, "beside", 0.5, 1, is_alone=True),
    # certificates and the auth file are read again; only over TLS
    "renew": Kind(0, "server", 0, 0),
    # done by clients all the time: they leave before they have the answer, on
    # a fresh connection or on one that brought answers before; or behind it,
    # however impolitely; and a third of them sits behind HAProxy
    "vanish": Kind(0, "client", 0, 0),
    "vanish-again": Kind(0, "client", 0, 0),
    "rude": Kind(0, "client", 0, 0),
    "balancer": Kind(0, "client", 0, 0),
}
MODES = (("always", "always", "always", "everysec", "none"),
         ("always", "always", "always", "always", "everysec"),
         ("always", "always", "everysec", "everysec", "none"))
WITH_FILES = ("always", "everysec")
NEEDS_MODE = {"kill-always": ("always",), "kill-old": ("always",),
              "kill-everysec": ("everysec",), "peer-copy": WITH_FILES,
              "old-copy": WITH_FILES, "aof-off": ("always",),
              "untold": ("everysec",)}
# a node's first replica costs it the vote: such a one soon has it again
PEER_MODES = {"replica": ("always",), "peer-copy": WITH_FILES}
MAX_TTLS_MS = (2000, 5000, 8000)
TIMEOUTS_MS = ((50, 50, 50), (50, 50, 600), (50, 150, 600), (50, 600, 600))
OFFSET_S = 0.5
MISTAKES = ("wrong-epoch", "wrong-address", "wrong-addresses", "swapped")
OTHER_NAMES = ("other-names", "new-names", "take-over")
LONG_S = 60  # a run that has time for what takes longer than a quarantine
STRIKES_S = (25, 40)  # from one strike to the next, every other of them calm
ALL = set(KINDS)
HARMLESS = {name for name in ALL if not KINDS[name].is_lossy}


@dataclass(frozen=True)
class Fault:
    kind: str
    begin: float                # seconds from the start
    end: float
    target: int = -1            # node or server
    pairs: tuple[tuple[int, int], ...] = ()  # server, node
    way: int = 0                # 0 to the node, 1 to the server; or how
    amount: float = 0           # of clocks: seconds or rate; of delays: ms
    peer: int = -1              # another node


def modes(seed: int) -> tuple[str, ...]:
    """How each node keeps its data."""
    rng = random.Random(f"{seed} modes")
    return tuple(rng.sample(rng.choice(MODES), NODES))


def max_ttls_ms(seed: int) -> tuple[int, ...]:
    """Of each server."""
    return tuple(random.Random(f"{seed} limits").choices(MAX_TTLS_MS,
                                                         k=SERVERS))


def timeouts_ms(seed: int) -> tuple[int, ...]:
    """How long each server waits for nodes."""
    rng = random.Random(f"{seed} timeouts")
    return tuple(rng.sample(rng.choice(TIMEOUTS_MS), SERVERS))


def offsets_s(seed: int, count: int) -> tuple[float, ...]:
    """By how much the clocks of the nodes, or servers, are ahead: in every other
    run by so much that medians differ when other nodes are asked."""
    rng = random.Random(f"{seed} offsets {count}")
    most = rng.choice((0, OFFSET_S))
    return tuple(rng.uniform(-most, most) for _ in range(count))


def quarantine_s(limit_ms: int) -> float:
    """How long redlockd keeps a node away that lost its memory, if too few others
    can be asked; the Q of docs/internals/guarantees.md."""
    window_s = 2
    return max(limit_ms * 1.01 / 1000, 4 * window_s) + 5 + 1


def lossy_nodes(faults: list[Fault], begin: float, end: float) -> set[int]:
    """Nodes that forget or step at any moment between."""
    return {fault.target for fault in faults if KINDS[fault.kind].is_lossy
            and fault.target >= 0
            and fault.begin <= end and fault.end >= begin}


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    if high <= low:
        return low
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def _glitch_s(rng: random.Random) -> float:
    """Back, on by what each validity pays for, or on by more."""
    act = rng.random()
    if act < 0.4:
        return -log_uniform(rng, 0.005, 20)
    return log_uniform(rng, 0.0005, 0.004) if act < 0.6 else \
        log_uniform(rng, 0.02, 1.5)


def _amount(rng: random.Random, kind: str) -> float:
    sign = rng.choice((-1, 1))
    if kind == "step":
        return sign * log_uniform(rng, 0.02, 20)
    if kind == "race":
        return sign * log_uniform(rng, 0.01, 0.5)
    if kind == "glitch":
        return _glitch_s(rng)
    if kind == "slew":
        return sign * log_uniform(rng, 0.0002, 0.004)
    if kind == "server-clock":
        return sign * log_uniform(rng, 0.02, 3600)
    if kind == "delay":
        return log_uniform(rng, 1, 300)
    if kind == "lag":
        return log_uniform(rng, 5, 150)
    if KINDS[kind].restarts:
        return rng.random()
    return 0


def _target(rng: random.Random, name: str, of_nodes: tuple[str, ...]) -> int:
    """Who it hits; who forgets, if it hits all: one at most."""
    kind = KINDS[name]
    if kind.target == "all":
        return of_nodes.index("none") if kind.is_lossy and "none" in of_nodes \
            else -1
    if kind.target in ("clients", "servers", "beside", "calm"):
        return -1
    if "server" in kind.target:
        return rng.randrange(SERVERS)
    return rng.choice([n for n in range(NODES)
                       if of_nodes[n] in NEEDS_MODE.get(name, of_nodes)])


def _peer(rng: random.Random, name: str, target: int,
          of_nodes: tuple[str, ...]) -> int:
    """The node whose memory it gets."""
    if name not in PEER_MODES:
        return -1
    return rng.choice([n for n in range(NODES) if n != target
                       and of_nodes[n] in PEER_MODES[name]])


def _pairs(rng: random.Random, kind: str) -> list[tuple[int, int]]:
    if kind == "ring":
        # each server sees three nodes, and no two servers the same three
        turn = rng.randrange(NODES)
        return [(s, (turn + 2 * s + 3 + i) % NODES)
                for s in range(SERVERS) for i in range(2)]
    if kind == "lag":  # one, or so many that the server's median is wrong
        server = rng.randrange(SERVERS)
        return [(server, n)
                for n in rng.sample(range(NODES), rng.choice((1, 3, 4, 5)))]
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
    peer = _peer(rng, name, target, of_nodes)
    fault = Fault(name, at, min(at + length, last), target, (), way, amount,
                  peer)
    if kind.target in ("ring", "pairs"):
        return replace(fault, target=-1, pairs=tuple(sorted(pairs)))
    if takes_locks(fault):
        return replace(fault, pairs=((rng.randrange(SERVERS), target),))
    return fault


def takes_locks(fault: Fault) -> bool:
    """A glitch that ends locks before their time, by more than is paid for.
    One server is to see it: else nobody can know."""
    return fault.kind == "glitch" and fault.amount > 0.005


def _blinds(fault: Fault, glitch: Fault) -> bool:
    """The server that is to see the glitch might not."""
    if not takes_locks(glitch):
        return False
    server, node = glitch.pairs[0]
    kind = KINDS[fault.kind]
    return ((server, node) in fault.pairs or kind.restarts or
            (kind.target == "server" and fault.target == server) or
            (kind.target == "node" and fault.target == node) or
            kind.target == "all")


def _hides(lag: Fault, step: Fault) -> bool:
    """A way that is slow in one direction may hide a step from that server: see
    What remains in docs/internals/guarantees.md."""
    return (lag.kind == "lag" and KINDS[step.kind].target == "clock" and
            step.target in {node for _, node in lag.pairs})


def _restarts(change: Fault, other: Fault) -> bool:
    """What must not be restarted meanwhile. Nor is a limit lowered while clients
    stand still who have chosen a TTL."""
    kind = KINDS[other.kind]
    return KINDS[change.kind].restarts and (
        kind.restarts or kind.target in ("server", "all") or
        (change.kind == "limits" and kind.target == "clients"))


def clash(a: Fault, b: Fault) -> bool:
    """They must not be active at once."""
    if a.end + GAP_S <= b.begin or b.end + GAP_S <= a.begin:
        return False
    if KINDS[a.kind].is_alone or KINDS[b.kind].is_alone:
        return True
    targets = {KINDS[a.kind].target, KINDS[b.kind].target}
    if _restarts(a, b) or _restarts(b, a):
        return True
    if "all" in targets and targets <= {"all", "node", "server"}:
        return True
    if len(targets) == 1 and targets != {"pairs"} and a.target == b.target:
        return True
    return (_blinds(a, b) or _blinds(b, a) or _hides(a, b) or _hides(b, a))


def _is_allowed(rng: random.Random, fault: Fault, faults: list[Fault],
                quarantine: float) -> bool:
    """Where it disturbs no other, seldom on a node that has no vote anyway, and
    so that a majority keeps what it knows."""
    if any(clash(fault, other) for other in faults):
        return False
    if not KINDS[fault.kind].is_lossy or fault.target < 0:
        return True
    apart = quarantine + MARGIN_S
    nodes = lossy_nodes(faults, fault.begin - apart, fault.end + apart)
    if fault.target in nodes and rng.random() < 0.6:
        return False
    return len(nodes | {fault.target}) <= LOSSY_NODES


def _pivots(ring: Fault) -> set[int]:
    """The nodes that are the only one that two servers both see."""
    seen = [{n for n in range(NODES) if (s, n) not in ring.pairs}
            for s in range(SERVERS)]
    return {n for s in range(SERVERS) for n in seen[s] & seen[s - 1]
            if len(seen[s] & seen[s - 1]) == 1}


def _strike(rng: random.Random, during: Fault, kinds: list[str], last: float,
            of_nodes: tuple[str, ...]) -> Fault | None:
    """A loss that everything depends on. In a ring, of a pivot: early, when it
    has too few others to ask; or at the end, so that it can ask them at once,
    while locks are held that only a bare majority has. And of any node while
    nobody asks for locks. Left to chance alone they would meet too seldom."""
    targets = _pivots(during) if during.kind == "ring" else set(range(NODES))
    lossy = [name for name in kinds if KINDS[name].is_lossy]
    if not lossy or rng.random() < 0.2:
        return None
    is_early = during.kind == "quiet" or rng.random() < 0.4
    at = during.begin + rng.uniform(0.05, 0.5) * (during.end - during.begin)
    if not is_early:
        at = max(at, during.end - rng.uniform(0.05, 0.5))
    for _ in range(10):
        fault = _draw(rng, lossy, at, last, of_nodes)
        if fault.target not in targets:
            continue
        length = fault.end - fault.begin
        if KINDS[fault.kind].is_late:
            return replace(fault, begin=at - length, end=at) if at > length \
                else None
        return fault if is_early else replace(fault, end=at + min(length, 0.3))
    return None


def _hush(rng: random.Random, strike: Fault, kinds: list[str],
          last: float) -> Fault | None:
    """Nobody asks for locks until the node that forgot may vote again."""
    if "quiet" not in kinds or rng.random() < 0.5:
        return None
    begin = strike.begin + rng.uniform(0.01, 0.3)
    end = min(strike.end + log_uniform(rng, 0.5, 3), last)
    return Fault("quiet", begin, end) if begin < end else None


def _strikes(seed: int, seconds: float, kinds: set[str],
             quarantine: float) -> list[Fault]:
    """In turns, if this seed has what they need, and every other one a calm
    time. They come first: all others keep out of their way."""
    rng = random.Random(f"{seed} strikes")
    names = sorted(name for name in kinds if KINDS[name].is_alone and
                   name != "calm")
    if seconds < LONG_S:
        names = [name for name in names if name not in OTHER_NAMES]
    rng.shuffle(names)
    timeouts = timeouts_ms(seed)
    if len(set(timeouts)) == 1 and "under-way" in names:
        names.remove("under-way")  # no call outlasts another server's patience
    if "calm" in kinds:
        names = [kind for name in names for kind in ("calm", name)] or ["calm"]
    strikes: list[Fault] = []
    at = rng.uniform(8, 20)
    while names and at < seconds:
        kind = names[len(strikes) % len(names)]
        fault = _draw(rng, [kind], at, seconds, modes(seed))
        server = timeouts.index(max(timeouts)) if kind == "under-way" \
            else rng.randrange(SERVERS)
        away = rng.sample([n for n in range(NODES) if n != fault.target], 2)
        fault = replace(fault, pairs=tuple((server, n) for n in sorted(away)))
        if _is_allowed(rng, fault, strikes, quarantine):
            strikes.append(fault)
        at += rng.uniform(*STRIKES_S)
    return strikes


def plan(seed: int, seconds: float, kinds: set[str],
         quarantine: float) -> list[Fault]:
    """All faults of a run, in order; each has ended when it is over."""
    rng = random.Random(f"{seed} faults")
    names = sorted(name for name in kinds if KINDS[name].weight and
                   not KINDS[name].is_alone)
    strikes = _strikes(seed, seconds, kinds, quarantine)
    faults: list[Fault] = []
    at = rng.uniform(0.5, 1.5)
    while names and at < seconds:
        recent = [*strikes,
                  *(one for one in faults[-200:] if one.end > at - 60)]
        for _ in range(10):
            fault = _draw(rng, names, at, seconds, modes(seed))
            if _is_allowed(rng, fault, recent, quarantine):
                faults.append(fault)
                break
        if fault.kind in ("ring", "quiet") and faults and fault is faults[-1]:
            strike = _strike(rng, fault, names, seconds, modes(seed))
            if strike and _is_allowed(rng, strike, [*recent, fault],
                                      quarantine):
                faults.append(strike)
                hush = _hush(rng, strike, names, seconds)
                if hush and _is_allowed(rng, hush, [*recent, fault, strike],
                                        quarantine):
                    faults.append(hush)
        at += rng.uniform(1, 3)
    return sorted(strikes + faults, key=lambda fault: fault.begin)
