# SPDX-License-Identifier: MIT
"""Whether locks that are held are on all nodes: read from the nodes themselves.

  spread  in calm times, a second after it was granted or extended, a lock is on
          each node, unless something else is there, or was there less than a
          second ago; a server that waits longer for nodes than others has as
          much more time

Something else may be there for long: what a server with a longer node timeout
has replicated behind a release through another one stays until its TTL ends.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from calm import Calm, Window
from checker import Lock, group
from history import EXCLUSIVE, EXTEND, MS, SECOND, Call, Violation, now
from nodes import Node, Redis

PATIENCE_MS = 50   # of a server for nodes, with which a second is enough
TIMEOUTS = 3       # a slower one needs as many of its own more
LATELY = 12 * SECOND  # no lock is held for longer without a call about it

# Of each key: "nothing"; "other"; or the numbers of its holders, each with its
# kind: "." of a writer, "~" of a reader.
READ = """
local out = {}
local time = redis.call('TIME')
local now_ms = time[1] * 1000 + math.floor(time[2] / 1000)
for i, key in ipairs(KEYS) do
    local kind = redis.call('TYPE', key).ok
    local text = kind == 'none' and 'nothing' or 'other'
    if kind == 'string' then
        text = string.sub(redis.call('GET', key), 1, 17)
    elseif kind == 'zset' then
        local holders = redis.call('ZRANGE', key, now_ms, '+inf', 'BYSCORE')
        for k = 1, #holders do
            holders[k] = string.sub(holders[k], 1, 17)
        end
        text = '~' .. table.concat(holders, ' ')
    end
    out[i] = text
end
return table.concat(out, ',')
"""

States = dict[str, dict[str, str]]  # of each node, by resource


@dataclass(frozen=True)
class Held:
    """A lock that must be everywhere."""
    id: int
    number: int
    mode: str
    resources: tuple[str, ...]
    last: str  # the call from which on its time counts
    end: int   # until when it is held at least
    since: int = 0  # when that was answered
    limit: int = 0  # how long its server may take

    def has(self, state: str) -> bool:
        """On one node, under one name."""
        return state == f"{self.number}." if self.mode == EXCLUSIVE else \
            f"{self.number}~" in state


def lacks(held: Held, state: str) -> bool:
    """Of one resource on one node. Among readers there is room for it; beside a
    writer there is none."""
    if state == "nothing":
        return True
    if held.mode == EXCLUSIVE:
        return False  # its own, or something else
    return state.startswith("~") and f"{held.number}~" not in state


def held_locks(calls: list[Call], window: Window, at: int,
               limit: Callable[[Call], int]) -> Iterator[Held]:
    """Those that are. limit: how long the server of a call may take."""
    locks = {lock.id: lock for its in group(calls).values() for lock in its}
    for lock in locks.values():
        held = _held(lock, window, at, limit)
        if held:
            yield held


def _held(lock: Lock, window: Window, at: int,
          limit: Callable[[Call], int]) -> Held | None:
    if not lock.grant or len(lock.same) > 1 or lock.forced:
        return None
    calls = [lock.grant, *lock.later]
    grants = [call for call in calls if call.is_won]
    is_settled = lock.grant.is_won and all(
        call.done and call.op in (lock.grant.op, EXTEND) for call in calls)
    if not is_settled or max(call.sent for call in grants) < window.begin:
        return None
    if len({call.mode for call in calls}) > 1:
        return None  # an extend that was refused may have changed it
    last = max(calls, key=lambda call: call.done)
    longest = max(limit(call) for call in calls)
    end = max(call.end for call in grants)
    if end <= at:
        return None
    return Held(lock.id, lock.number, last.mode, lock.grant.resources,
                str(last), end, last.done, longest)


def note_others(held: Iterable[Held], states: States, window: Window,
                at: int) -> None:
    """What else is there, and what was there when somebody looked last."""
    for one in held:
        for node, its in states.items():
            for name in one.resources:
                place = one.id, node, name
                if not lacks(one, its[name]) and not one.has(its[name]):
                    window.others.add(place)
                elif place in window.others:
                    window.others.remove(place)
                    window.gone[place] = at


def is_due(one: Held, window: Window, at: int, gone: int = 0) -> bool:
    """gone: when what was there instead had gone."""
    return window.deadline(max(one.since, gone), one.limit) <= at


def compare(held: Iterable[Held], states: States, window: Window,
            at: int) -> list[Violation]:
    """at: before the nodes were read."""
    found = []
    for one in held:
        without = [f"{node} {name}" for node, its in states.items()
                   for name in one.resources if lacks(one, its[name]) and
                   is_due(one, window, at,
                          window.gone.get((one.id, node, name), 0))]
        if without:
            found.append(Violation(
                "spread", f"number {one.number}, {one.mode}, is not on "
                f"{', '.join(without)}, long after [{one.last}]", at,
                one.resources[0]))
    return found


def read(node: Node, names: list[str]) -> dict[str, str]:
    with Redis(node) as redis:
        reply = redis.ask("EVAL", READ, str(len(names)), *names)
    states = reply.split(b"\r\n")[1].decode().split(",")
    return dict(zip(names, states, strict=True))


class Spread(Calm):
    def look_at(self, window: Window) -> None:
        """Locks that are held before the nodes are read, and behind it."""
        begin = now()
        window.late = self.metronome.worst(window.begin, begin)
        before = list(held_locks(self._lately(), window, begin, self._limit))
        names = sorted({name for one in before for name in one.resources})
        if not names:
            return
        states = {node.name: read(node, names) for node in self.cluster.nodes}
        at = now()
        after = {one for one in held_locks(self._lately(), window, at,
                                           self._limit)}
        held = [one for one in before if one in after]
        note_others(held, states, window, at)
        due = [one for one in held if is_due(one, window, begin)]
        window.judged |= {one.id for one in due}
        for violation in compare(due, states, window, begin):
            if violation.text not in {one.text for one in window.found}:
                window.found.append(violation)

    def _lately(self) -> list[Call]:
        since = now() - LATELY
        return [call for call in self.history.snapshot() if call.sent > since]

    def _limit(self, call: Call) -> int:
        timeout_ms = self.cluster.config.timeouts_ms[call.server]
        return SECOND + TIMEOUTS * (timeout_ms - PATIENCE_MS) * MS
