# SPDX-License-Identifier: MIT
"""Clients that take locks, change what these protect, extend, release, forget
and vanish: a thread each, all with the same clock. Some ask with a key, and
again when the answer is lost; or twice at once, which takes a second thread.
"""
from __future__ import annotations

import itertools
import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, replace

from connection import SILENT_S, Connection, Leave
from drawn import PAGES, Drawn
from history import (ACQUIRE, EXCLUSIVE, EXTEND, MS, RELEASE, SECOND, SHARED,
                     UPGRADE, WATCH, Call, History, Violation, now)
from identities import ANYBODY, NARROW, WIDE, Identity
from jobs import Job
from plan import log_uniform
from register import Register, refused
from trespass import MEDDLING, SHARE, Trespasser
from visits import ALL, LONELY, POOL_NAME as POOL, SLOTS, Visitor
from wants import Want, lock_id, slot_name

TTL_MIN_MS = 200
WAIT_MAX_MS = 4000
WAITING = 0.3      # share of acquires that wait
FAULTY = 0.04      # share of calls whose clients leave
IMPATIENT = 0.2    # … of those that wait, or have a key
SEVERAL = 0.15     # share of locks over several resources
KEYED = 0.25       # … of acquires with an Idempotency-Key; of these:
TWICE = 0.15       # … that are sent twice at once
UNREAD = 0.25      # … that are sent again although they were granted
REPEATS = 4        # at most
BATCHED = 0.3      # share of calls that go with others in one request
MADE_UP = f"{1795221641865000}.{0:040x}"  # a token of no lock
LENT = 0.1         # share of calls about a lock by whoever has its token
BODIES = 0.2       # share of extends and releases with the token in the body
VISITS = 0.06      # share of cycles that ask about other's locks
FORCED = 0.03      # share of locks that are released by force, at once
PERMITS = 0.25     # share of acquires that want some
READERS = 0.6      # … of acquires of what is read that want to share it
DOWNGRADES = 0.3   # … of extensions of exclusive locks
MISTAKES = 0.1     # … of calls with an older token; of readers that would write
KEEPERS = 5        # see keepers.py
HELD = [f"held{i}" for i in range(2 * KEEPERS)]
FORGET_S = 60      # after which a forced release has no more effect
BUCKET = 100 * MS  # in which time with and without quorum is counted


def is_slow(resources: tuple[str, ...]) -> bool:
    """Half of the locks are held for long, to be met by faults while they are
    held; the others change hands as often as they can."""
    return int(resources[0][-1]) % 2 == 1


def is_read(name: str) -> bool:
    """Two thirds of what is locked, slow or not, is also locked by readers."""
    return int(name[-1]) % 3 != 0


def batch_of(call: Call, head: str, body: dict) -> tuple[str, dict]:
    """The call among others, in one request."""
    fields = {"operation": EXTEND if call.op == UPGRADE else call.op, **body}
    if call.op != ACQUIRE:
        fields["id"] = lock_id(call.resources)
    line, *headers = head.splitlines(keepends=True)
    for header in list(headers):
        if header.startswith("Idempotency-Key: "):
            headers.remove(header)
            fields["idempotency_key"] = call.key
    assert call.others is not None
    operations = [*call.others]
    operations.insert(call.place, fields)
    return "".join(["POST /batch HTTP/1.1\r\n", *headers]), \
        {"operations": operations}


@dataclass(frozen=True)
class Grant:
    call: Call
    token: str
    mode: str = EXCLUSIVE  # of the token


class World:
    """What all clients share."""

    def __init__(self, resources: int, max_ttls_ms: list[int],
                 history: History, kinds: set[str]) -> None:
        self.kinds = kinds  # of faults, those of clients among them
        self.max_ttls_ms = max_ttls_ms  # of each server; they may change
        self.history = history
        names = [f"r{i}" for i in range(resources)]
        # these look like slots, and are none
        names += [f"{POOL}#{i}" for i in range(SLOTS)]
        self.names = names  # of what is locked by name
        names = names + [slot_name(pool, i) for pool in (POOL, *LONELY)
                         for i in range(SLOTS)]
        self.lively = list(HELD)  # of which there is much to tell
        self.registers = {name: Register(name) for name in names}
        self.stop = threading.Event()
        self.goes_on = threading.Event()  # not set: nobody asks for anything
        self.goes_on.set()
        self.outcomes: Counter[str] = Counter()
        self.downgrades = 0
        self.drawn = Drawn()
        self.pages = itertools.cycle([*sorted(PAGES), "/readyz?verbose"])
        self.forces: list[Call] = []  # of the last while
        self.lock = threading.Lock()
        self.violations: list[Violation] = []
        self.granting: set[int] = set()  # buckets in which nodes decided
        self.without: set[int] = set()   # in which some server had no quorum

    def next_page(self) -> str:
        with self.lock:
            return next(self.pages)

    def count(self, call: Call) -> None:
        answer = f"{call.status} {call.code}" if call.status else call.code
        with self.lock:
            waits = call.op == ACQUIRE and call.wait_ms
            mode = f"{SHARED} " if call.mode == SHARED else ""
            self.outcomes[f"{mode}{'wait' if waits else call.op} "
                          f"{answer.strip()}"] += 1
        if call.op != ACQUIRE:
            return
        # who waits is told of no quorum only at the end
        begin = call.done if call.wait_ms else call.sent
        buckets = range(begin // BUCKET, call.done // BUCKET + 1)
        if call.status in (200, 201, 409):
            self.granting.add(buckets[-1])
        elif call.code == "no_quorum":
            self.without.update(buckets)

    def count_downgrade(self) -> None:
        with self.lock:
            self.downgrades += 1

    def note_force(self, call: Call) -> None:
        """Before it is sent."""
        with self.lock:
            since = now() - FORGET_S * SECOND
            self.forces = [one for one in self.forces if one.sent > since]
            self.forces.append(call)

    def was_forced(self, grant: Call) -> bool:
        """Whether its holder may have been put out."""
        with self.lock:
            return any(set(force.resources) & set(grant.resources) and
                       (force.number in (0, grant.number) or
                        grant.key and force.number > grant.number)
                       for force in self.forces)


class Client(Job):
    def __init__(self, index: int, seed: int, world: World,
                 identity: Identity, connections: list[list[Connection]]
                 ) -> None:
        """connections: one to each server, and others for what is sent at
        once."""
        super().__init__(name=f"client {index}")
        self.index, self.world, self.identity = index, world, identity
        self.names = [name for name in world.names
                      if identity.may_ask((name,))]
        self.slots = [name for name in (slot_name(POOL, i)
                                        for i in range(SLOTS))
                      if identity.may_ask((name,))]
        self.rng = random.Random(f"{seed} client {index}")
        self.connections, self.second = connections

    def work(self) -> None:
        try:
            while not self.world.stop.is_set():
                self._cycle()
        finally:
            for connection in self.connections + self.second:
                connection.close()

    def _cycle(self) -> None:
        if self.identity is not ANYBODY and self.rng.random() < SHARE:
            Trespasser(self).acquire()
        want = self._draw_want()
        if self.rng.random() < VISITS:
            Visitor(self).visit()
            return
        grants = self.acquire(want)
        if grants:
            Holder(self, want, grants).hold()
        else:
            self.pause(0.0005, 0.02)

    def _draw_want(self) -> Want:
        rng, count = self.rng, 1
        key = f"{rng.getrandbits(96):024x}" if rng.random() < KEYED else ""
        if self.identity.may_ask((POOL,)) and rng.random() < PERMITS:
            # mostly one, and the limit that all others have
            permits = rng.choice((1, 1, 1, 1, 2, 3))
            limit = SLOTS if rng.random() < 0.8 else rng.randint(permits, SLOTS)
            pool = POOL if rng.random() < 0.6 else rng.choice(LONELY)
            return Want((pool,), key, f"client-{self.index}", limit, permits)
        if rng.random() < SEVERAL:
            count = rng.randint(2, 3)
        resources = sorted(rng.sample(self.names, count))
        owner = f"client-{self.index}" if rng.random() < 0.3 else ""
        is_shared = all(map(is_read, resources)) and rng.random() < READERS
        return Want(tuple(resources), key, owner,
                    mode=SHARED if is_shared else EXCLUSIVE)

    def draw_name(self) -> str:
        return self.rng.choice(self.names)

    def _draw_ttl_ms(self, call: Call) -> int:
        longest = self.world.max_ttls_ms[call.server]
        return int(log_uniform(self.rng, TTL_MIN_MS, longest / (
            1 if call.limit or is_slow(call.resources) else 4)))

    def pause(self, low_s: float, high_s: float) -> None:
        self.world.stop.wait(log_uniform(self.rng, low_s, high_s))

    # ---- acquiring ----------------------------------------------------------

    def acquire(self, want: Want) -> list[Grant]:
        """The grants, in the order of their numbers: the last one counts."""
        if want.key and self.rng.random() < TWICE:
            return self._acquire_twice(want)
        call = self._prepare(want)
        grants = self._ask(call, want)
        for _ in range(REPEATS):
            is_lost = not call.status or call.status == 503 or \
                (grants and self.rng.random() < UNREAD)
            if not want.key or not is_lost or self.world.stop.is_set():
                break
            self.pause(0.0001, 0.1)
            call = self._prepare(want, call)
            grants = grants + self._ask(call, want)
        return grants if call.is_won else []

    def _acquire_twice(self, want: Want) -> list[Grant]:
        """Nobody knows which one comes first."""
        one = self._prepare(want)
        two = self._prepare(want, one)
        one.is_repeat = True
        grants: list[Grant] = []
        leave = self._draw_leave(self.second[two.server], two)
        other = Job(lambda: grants.extend(self._ask(
            two, want, self.second[two.server], leave)))
        other.start()
        grants += self._ask(one, want)
        other.join()
        return sorted(grants, key=lambda grant: grant.call.number)

    def _prepare(self, want: Want, before: Call | None = None) -> Call:
        """Of what was asked for before, through another server."""
        call = self.note(ACQUIRE, want.resources)
        call.key, call.mode = want.key, want.mode
        if want.limit:
            call.limit, call.permits = want.limit, want.permits
            [call.pool] = want.resources
        if self.rng.random() < WAITING:
            call.wait_ms = int(log_uniform(self.rng, 1, WAIT_MAX_MS))
        if before:
            call.is_repeat = True
            if call.server == before.server:
                call.server = (call.server + 1) % len(self.connections)
        call.ttl_ms = self._draw_ttl_ms(call)
        self._draw_others(call)
        return call

    def _ask(self, call: Call, want: Want, connection: Connection | None = None,
             leave: Leave | None = None) -> list[Grant]:
        """With a connection and a leave, or those that this client draws."""
        if not connection:
            connection = self.connections[call.server]
            leave = self._draw_leave(connection, call)
        members = self._send(call, want.head() + self.identity.head(),
                             want.body(call), connection, leave)
        return [Grant(call, members["token"], want.mode)] if call.is_won else []

    def _draw_leave(self, connection: Connection, call: Call) -> Leave | None:
        """How this client leaves its call; mostly not at all."""
        kinds = [kind for kind in ("vanish", "vanish-again", "rude")
                 if kind in self.world.kinds]
        is_waiting = call.op == WATCH or \
            call.op == ACQUIRE and (call.wait_ms or call.key or call.limit)
        share = IMPATIENT if is_waiting else FAULTY
        if not kinds or self.rng.random() >= share:
            return None
        kind = self.rng.choice(kinds)
        if kind == "vanish":
            connection.close()
        return Leave.draw(self.rng, kind == "rude",
                          max(50, call.wait_ms) / 1000)

    # ---- calls --------------------------------------------------------------

    def note(self, op: str, resources: tuple[str, ...]) -> Call:
        return Call(op, self.index, self.rng.randrange(len(self.connections)),
                    resources)

    def _note_about(self, op: str, grant: Call, mode: str) -> Call:
        call = self.note(op, grant.resources)
        call.of, call.number, call.key = grant.id, grant.number, grant.key
        call.mode, call.pool = mode, grant.pool
        return call

    def extend(self, grant: Grant, mode: str = "") -> tuple[Call, Grant]:
        """In the mode of its token, or another one. The lock as it is then, if
        that is told."""
        mode = mode or grant.mode
        resources = grant.call.resources
        is_upgrade = (grant.mode, mode) == (SHARED, EXCLUSIVE)
        call = self._note_about(UPGRADE if is_upgrade else EXTEND, grant.call,
                                grant.mode if is_upgrade else mode)
        call.ttl_ms = self._draw_ttl_ms(call)
        body: dict = {"ttl_ms": call.ttl_ms}
        if mode != grant.mode or \
                (mode == SHARED and self.rng.random() < 0.5):
            body["mode"] = mode
        head = f"PUT /locks/{lock_id(resources)}/extend HTTP/1.1\r\n"
        self._draw_others(call)
        if call.others is not None or self.rng.random() < BODIES:
            body["token"] = grant.token
        else:
            head += f"X-Lock-Token: {grant.token}\r\n"
        members = self.ask(call, head, body, self._draw_identity(resources))
        token = members.get("token", "") if call.is_won else ""
        return call, Grant(grant.call, token, mode) if token else grant

    def _draw_others(self, call: Call) -> None:
        """Mostly none: then it is sent alone. What others ask in the same
        request is about other locks, which nobody has or wants."""
        if call.wait_ms or self.rng.random() >= BATCHED:
            return
        call.others = []
        for i in range(self.rng.randint(0, 5)):
            name = f"other{self.index}.{i}"
            if self.rng.random() < 0.4:
                call.others.append({"operation": ACQUIRE, "resource": name,
                                    "ttl_ms": TTL_MIN_MS})
            else:
                call.others.append({
                    "operation": self.rng.choice((EXTEND, RELEASE)),
                    "id": lock_id((name,)), "token": f"{MADE_UP}.{i}"})
        call.place = self.rng.randint(0, len(call.others))

    def release(self, grant: Grant) -> Call:
        call = self._note_about(RELEASE, grant.call, grant.mode)
        head = f"DELETE /locks/{lock_id(call.resources)} HTTP/1.1\r\n"
        self._draw_others(call)
        is_inside = call.others is not None or self.rng.random() < BODIES
        if not is_inside:
            head += f"X-Lock-Token: {grant.token}\r\n"
        self.ask(call, head, {"token": grant.token} if is_inside else None,
                 self._draw_identity(call.resources))
        return call

    def _draw_identity(self, resources: tuple[str, ...]) -> Identity:
        """Whoever has the token of a lock may have it by another name."""
        if self.identity is ANYBODY or self.rng.random() >= LENT:
            return self.identity
        return NARROW if NARROW.may_ask(resources) else WIDE

    def ask(self, call: Call, head: str, body: dict | None = None,
            who: Identity | None = None) -> dict:
        """As this client, or somebody else."""
        connection = self.connections[call.server]
        return self._send(call, head + (who or self.identity).head(), body,
                          connection, self._draw_leave(connection, call))

    def _send(self, call: Call, head: str, body: dict | None,
              connection: Connection, leave: Leave | None) -> dict:
        """Notes the call before it is sent: a release ends belief then."""
        if call.others is not None:
            head, body = batch_of(call, head, body or {})
        text = json.dumps(body).encode() if body is not None else b""
        self.world.goes_on.wait(SILENT_S)
        call.sent = now()
        if call.op == ACQUIRE:
            call.of = call.id  # no belief without an answer
        self.world.history.add(call)
        self.world.drawn.note(head, body)
        members = connection.request(call, head, text, leave)
        self.world.count(call)
        return members


class Holder:
    """A client while it has a lock, or has had one."""

    def __init__(self, client: Client, want: Want,
                 grants: list[Grant]) -> None:
        """grants: the last one is the lock; it ended those before."""
        self.client, self.want, self.grant = client, want, grants[-1]
        self.ended = grants[:-1]
        self.mode = self.grant.mode  # as which it relies on the lock
        self.old: Grant | None = None  # with its token before a downgrade
        self.rng = client.rng
        self.end = self.grant.call.end  # of what it believes
        self.registers = [client.world.registers[name]
                          for name in self.grant.call.resources]

    def hold(self) -> None:
        slow = 0.10 if is_slow(self.grant.call.resources) else 0.005
        self._try_what_is_wrong()
        while not self.client.world.stop.is_set():
            act = self.rng.random()
            if act < slow:
                self._oversleep()
                return
            if act < 2 * slow:
                return  # the lock has to end by itself
            if act < 0.5:
                self._update()
            elif act < 0.6:
                self.client.pause(0.0005, 0.03)
            elif act < 0.75:
                if not self._extend():
                    return
            else:
                self._release()
                return

    def _try_what_is_wrong(self) -> None:
        """Tokens that a repeat has ended; the key for another lock."""
        for grant in self.ended:
            act = self.rng.random()
            if act < 0.3:
                self.client.extend(grant)
            elif act < 0.6:
                self.client.release(grant)
        if self.rng.random() < FORCED:
            self._force()
        if self.client.identity is not ANYBODY and \
                self.rng.random() < MEDDLING:
            Trespasser(self.client).meddle(self.grant)
        if self.mode == SHARED and self.rng.random() < MISTAKES:
            self.client.extend(self.grant, EXCLUSIVE)
        if not self.want.key or self.want.limit or self.rng.random() >= 0.1:
            return
        name = self.client.draw_name()
        resources = tuple(sorted({*self.want.resources, name}))
        if resources != self.want.resources:
            other = replace(self.want, resources=resources)
            for grant in self.client.acquire(other):  # this one has ended
                self.client.release(grant)

    def _force(self) -> None:
        """An operator puts this holder out, or from a part of what it has. It is
        not told, and goes on."""
        resources = self.grant.call.resources
        if len(resources) > 1 and self.rng.random() < 0.6:
            resources = (self.rng.choice(resources),)
        is_all = self.mode == SHARED and self.rng.random() < 0.5
        Visitor(self.client).force(resources, ALL if is_all else
                                   str(self.grant.call.number))

    def _update(self) -> None:
        number = self.grant.call.number
        for register in self.registers:
            value = register.read(number, self.mode)
            if value is not None and self.rng.random() < 0.5:
                time.sleep(log_uniform(self.rng, 0.0001, 0.01))
            is_accepted = value is not None and (
                register.read(number, SHARED) == value if self.mode == SHARED
                else register.write(number, value + 1))
            if not is_accepted and \
                    not self.client.world.was_forced(self.grant.call):
                self.client.world.violations += refused(register.name, number,
                                                        self.end)

    def _extend(self) -> bool:
        """False: the lock is somebody else's, or gone."""
        mode, was_shared = self._draw_mode(), self.mode == SHARED
        call, grant = self.client.extend(self.grant, mode)
        if call.is_won:
            self.end = max(self.end, call.end)
        if grant.mode != self.grant.mode:
            self.old = self.grant
            self.client.world.count_downgrade()
            if self.rng.random() < MISTAKES:
                self.client.extend(self.old)
        self.grant = grant
        has_ended = mode == EXCLUSIVE and was_shared  # perhaps, this token
        return call.status not in (404, 409) or has_ended

    def _draw_mode(self) -> str:
        """Of an extension. Others may read from when a downgrade is sent,
        whatever becomes of it; if that is unknown, it is asked for again."""
        if self.grant.mode == SHARED:
            return self.grant.mode
        if self.mode == SHARED and self.rng.random() < MISTAKES:
            return EXCLUSIVE
        if self.rng.random() < DOWNGRADES:
            self.mode = SHARED
        return self.mode

    def _release(self) -> None:
        self.end = 0
        while True:
            is_old = self.old and self.rng.random() < MISTAKES
            call = self.client.release(self.old if is_old else self.grant)
            if self.rng.random() < (0.5 if call.is_won else 0.9):
                return

    def _oversleep(self) -> None:
        """Comes back about when the validity ends, or much later."""
        left_s = max(0, self.end - now()) / 1e9
        self.client.world.stop.wait(left_s + self.rng.choice(
            (self.rng.uniform(-0.02, 0.05), self.rng.uniform(0, 1))))
        act = self.rng.random()
        if act < 0.4:
            self._update()
        elif act < 0.7:
            self._extend()
        else:
            self._release()
