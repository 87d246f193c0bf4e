"""Clients that take locks, change what these protect, extend, release, forget
and vanish: a thread each, all with the same clock.
"""
from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter

from connection import SILENT_S, Connection, Leave
from history import (ACQUIRE, EXTEND, INSPECT, MS, RELEASE, Call, History,
                     Violation, now)
from plan import log_uniform
from register import Register, refused

TTL_MIN_MS = 200
WAIT_MAX_MS = 4000
WAITING = 0.3      # share of acquires that wait
FAULTY = 0.04      # share of calls whose clients leave
IMPATIENT = 0.2    # … of those that wait
BUCKET = 100 * MS  # in which time with and without quorum is counted


def is_slow(resource: str) -> bool:
    """Half of the locks are held for long, to be met by faults while they are
    held; the others change hands as often as they can."""
    return int(resource[1:]) % 2 == 1


class World:
    """What all clients share."""

    def __init__(self, resources: int, max_ttl_ms: int, history: History,
                 kinds: set[str]) -> None:
        self.kinds = kinds  # of faults, those of clients among them
        self.max_ttl_ms = max_ttl_ms
        self.history = history
        self.registers = {f"r{i}": Register(f"r{i}") for i in range(resources)}
        self.stop = threading.Event()
        self.goes_on = threading.Event()  # not set: nobody asks for anything
        self.goes_on.set()
        self.outcomes: Counter[str] = Counter()
        self.lock = threading.Lock()
        self.violations: list[Violation] = []
        self.granting: set[int] = set()  # buckets in which nodes decided
        self.without: set[int] = set()   # in which some server had no quorum

    def count(self, call: Call) -> None:
        answer = f"{call.status} {call.code}" if call.status else call.code
        with self.lock:
            self.outcomes[f"{'wait' if call.wait_ms else call.op} "
                          f"{answer.strip()}"] += 1
        if call.op != ACQUIRE:
            return
        # who waits is told of no quorum only at the end
        begin = call.done if call.wait_ms else call.sent
        buckets = range(begin // BUCKET, call.done // BUCKET + 1)
        if call.status in (201, 409):
            self.granting.add(buckets[-1])
        elif call.code == "no_quorum":
            self.without.update(buckets)


class Client(threading.Thread):
    def __init__(self, index: int, seed: int, world: World,
                 connections: list[Connection]) -> None:
        """connections: one to each server."""
        super().__init__(name=f"client {index}", daemon=True)
        self.index, self.world = index, world
        self.rng = random.Random(f"{seed} client {index}")
        self.connections = connections
        self.error = ""

    def run(self) -> None:
        try:
            while not self.world.stop.is_set():
                self._cycle()
        except Exception as error:  # a driver that is broken proves nothing
            self.error = f"{self.name}: {error!r}"
            raise
        finally:
            for connection in self.connections:
                connection.close()

    def _cycle(self) -> None:
        resource = self.rng.choice(list(self.world.registers))
        ttl_ms = self.draw_ttl_ms(resource)
        if self.rng.random() < 0.02:
            self._inspect(resource)
            return
        grant = self._acquire(resource, ttl_ms)
        if grant[0].status == 201:
            Holder(self, *grant).hold()
        else:
            self.pause(0.0005, 0.02)

    def draw_ttl_ms(self, resource: str) -> int:
        longest = self.world.max_ttl_ms / (1 if is_slow(resource) else 4)
        return int(log_uniform(self.rng, TTL_MIN_MS, longest))

    def pause(self, low_s: float, high_s: float) -> None:
        self.world.stop.wait(log_uniform(self.rng, low_s, high_s))

    def _acquire(self, resource: str, ttl_ms: int) -> tuple[Call, str]:
        """The call, and the token if it was granted."""
        body = {"resource": resource, "ttl_ms": ttl_ms}
        if self.rng.random() < 0.3:
            body["owner"] = f"client-{self.index}"
        call = self._note(ACQUIRE, resource, ttl_ms)
        if self.rng.random() < WAITING:
            call.wait_ms = int(log_uniform(self.rng, 1, WAIT_MAX_MS))
            body["wait_ms"] = call.wait_ms
        members = self.send(call, "POST /locks HTTP/1.1\r\n", body)
        return call, members.get("token", "")

    def _draw_leave(self, connection: Connection,
                    wait_ms: int) -> Leave | None:
        """How this client leaves its call; mostly not at all."""
        kinds = [kind for kind in ("vanish", "vanish-again", "rude")
                 if kind in self.world.kinds]
        share = IMPATIENT if wait_ms else FAULTY
        if not kinds or self.rng.random() >= share:
            return None
        kind = self.rng.choice(kinds)
        if kind == "vanish":
            connection.close()
        return Leave.draw(self.rng, kind == "rude", max(50, wait_ms) / 1000)

    def _inspect(self, resource: str) -> None:
        self.send(self._note(INSPECT, resource),
                  f"GET /locks/{resource} HTTP/1.1\r\n")

    def _note(self, op: str, resource: str, ttl_ms: int = 0) -> Call:
        return Call(op, self.index, self.rng.randrange(len(self.connections)),
                    resource, ttl_ms)

    def extend(self, grant: Call, token: str) -> Call:
        call = self._note(EXTEND, grant.resource,
                          self.draw_ttl_ms(grant.resource))
        call.of, call.number = grant.id, grant.number
        self.send(call, f"PUT /locks/{grant.resource}/extend HTTP/1.1\r\n"
                  f"X-Lock-Token: {token}\r\n", {"ttl_ms": call.ttl_ms})
        return call

    def release(self, grant: Call, token: str) -> Call:
        call = self._note(RELEASE, grant.resource)
        call.of, call.number = grant.id, grant.number
        self.send(call, f"DELETE /locks/{grant.resource} HTTP/1.1\r\n"
                  f"X-Lock-Token: {token}\r\n")
        return call

    def send(self, call: Call, head: str, body: dict | None = None) -> dict:
        """Notes the call before it is sent: a release ends belief then."""
        text = json.dumps(body).encode() if body is not None else b""
        self.world.goes_on.wait(SILENT_S)
        call.sent = now()
        if call.op == ACQUIRE:
            call.of = call.id  # no belief without an answer
        self.world.history.add(call)
        connection = self.connections[call.server]
        members = connection.request(call, head, text,
                                     self._draw_leave(connection,
                                                      call.wait_ms))
        self.world.count(call)
        return members


class Holder:
    """A client while it has a lock, or has had one."""

    def __init__(self, client: Client, grant: Call, token: str) -> None:
        self.client, self.grant, self.token = client, grant, token
        self.rng = client.rng
        self.end = grant.end  # of what it believes
        self.register = client.world.registers[grant.resource]

    def hold(self) -> None:
        slow = 0.10 if is_slow(self.grant.resource) else 0.005
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

    def _update(self) -> None:
        number = self.grant.number
        value = self.register.read(number)
        if value is not None and self.rng.random() < 0.5:
            time.sleep(log_uniform(self.rng, 0.0001, 0.01))
        if value is None or not self.register.write(number, value + 1):
            self.client.world.violations += refused(self.grant.resource, number,
                                                    self.end)

    def _extend(self) -> bool:
        """False: the lock is somebody else's, or gone."""
        call = self.client.extend(self.grant, self.token)
        if call.is_won:
            self.end = max(self.end, call.end)
        return call.status not in (404, 409)

    def _release(self) -> None:
        self.end = 0
        while True:
            call = self.client.release(self.grant, self.token)
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
