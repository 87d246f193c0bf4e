#!/usr/bin/env python3
"""The Node client under faults: does its work ever go on after its lock has
ended?

faults.py TRIES [FAULT...]

In each try a process works under a lock and writes down the time; by the same
clock, a proxy notes until when the lock is valid. Then a fault happens, at a
random moment between two renewals. No work may be done after the validity, and
the process must end as expected: with the loss, or not at all.
"""
from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from processes import spawn, stopped
from rounds import play
from world import WAIT_S, World, now_ns, wait_until

# A tenth of it is left when the signal aborts: time for a busy machine to wake
# the worker.
TTL_S = 3
LOST, HELD, KILLED = 70, "held", -signal.SIGKILL
# of the clock of the proxies and that of the workers
APART_NS = now_ns() - time.monotonic_ns()


class Try:
    """One process that works under a lock."""

    def __init__(self, world: World, how: str, resource: str) -> None:
        self.world, self.resource = world, resource
        self.file = world.folder / resource
        with (world.folder / "log").open("ab") as log:
            self.process = spawn(
                os.environ["NODE"], os.environ["WORKER"], how, resource,
                self.file, TTL_S * 1000,
                env={**os.environ, "REDLOCKD_URL": ",".join(world.urls)},
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log,
                text=True)

    def wait_working(self) -> None:
        wait_until(self.last_ns, f"{self.resource} works", WAIT_S)
        assert self.process.stdout
        self.told = json.loads(self.process.stdout.readline())

    def last_ns(self) -> int:
        """When it worked last; 0: not yet."""
        try:
            text = self.file.read_text()
        except FileNotFoundError:
            return 0
        return int(text) + APART_NS if text else 0

    def until_ns(self) -> int:
        return self.world.until_ns[self.resource]

    def early_ms(self) -> float:
        return (self.until_ns() - self.last_ns()) / 1e6

    def send(self, number: int) -> None:
        os.kill(self.process.pid, number)


Tries = list[Try]


# ---- the faults: each is done to all tries, and undone where needed ----------

def wait_ends(tries: Tries) -> None:
    for one in tries:
        one.process.wait(WAIT_S)


def client_stopped(_: World, tries: Tries) -> None:
    """For longer than the lock lasts."""
    for one in tries:
        one.send(signal.SIGSTOP)
    wait_until(lambda: all(now_ns() > one.until_ns() for one in tries),
               "the locks end", WAIT_S)
    for one in tries:
        one.send(signal.SIGCONT)
    wait_ends(tries)


def loop_blocked(_: World, tries: Tries) -> None:
    """Neither timers nor answers are seen: check() has only the clock."""
    for one in tries:
        one.send(signal.SIGUSR2)
    wait_ends(tries)


def client_killed(world: World, tries: Tries) -> None:
    """The lock is free when its TTL ends."""
    for one in tries:
        one.process.kill()
    wait_ends(tries)
    wait_until(lambda: all(world.is_free(one.resource) for one in tries),
               "the locks end", WAIT_S)


def answers_lost(world: World, tries: Tries) -> None:
    with world.cut(*world.proxies):
        wait_ends(tries)


def grant_lost(world: World, tries: Tries) -> None:
    """The answer to the acquire: the repeat at the other replica gets the same
    lock."""
    repeats = world.repeats
    more: Tries = []
    try:
        with world.cut(world.proxies[0]):
            more += [Try(world, "checks", f"{one.resource}.more")
                     for one in tries]
            for one in more:
                one.wait_working()
    finally:
        for one in more:
            one.process.kill()
        wait_ends(more)
    assert world.repeats >= repeats + len(more), "it was granted anew"


def quorum_lost(world: World, tries: Tries) -> None:
    with stopped(world.nodes[:3]):
        wait_ends(tries)
    world.wait_ready()


def servers_stopped(world: World, tries: Tries) -> None:
    """Both hang: there is no answer, and no end of a connection."""
    with stopped(world.servers.values()):
        wait_ends(tries)
    world.wait_ready()


def servers_killed(world: World, tries: Tries) -> None:
    for number in range(2):
        world.kill_server(number)
    try:
        wait_ends(tries)
    finally:
        for number in range(2):
            world.start_server(number)


def lock_taken_away(world: World, tries: Tries) -> None:
    """Somebody else releases it: that is noticed at the next renewal."""
    for one in tries:
        status, _ = world.ask("DELETE", f"/locks/{one.resource}",
                              X_Lock_Token=one.told["token"])
        assert status == 200, status
    wait_ends(tries)


def goes_on(tries: Tries) -> None:
    """No lock is lost within half a TTL more than one: they are renewed."""
    end = time.monotonic() + 1.5 * TTL_S
    while time.monotonic() < end:
        for one in tries:
            assert one.process.poll() is None, "lost"
        time.sleep(0.05)
    now = now_ns()
    for one in tries:
        assert one.until_ns() > now, "not renewed"
    wait_until(lambda: all(one.last_ns() > now for one in tries), "work", WAIT_S)


def replica_killed(world: World, tries: Tries) -> None:
    number = random.randrange(2)
    world.kill_server(number)
    try:
        goes_on(tries)
    finally:
        world.start_server(number)


def replica_stopped(world: World, tries: Tries) -> None:
    with stopped(random.sample(list(world.servers.values()), 1)):
        goes_on(tries)


def nodes_stopped(world: World, tries: Tries) -> None:
    """Two of five."""
    with stopped(world.nodes[:2]):
        goes_on(tries)
    world.wait_ready()


@dataclass
class Fault:
    do: Callable[[World, Tries], None]
    ends: int | str  # the exit status of the process
    how: tuple[str, ...] = ("checks", "listens")  # it works


FAULTS = [
    # no signal aborts while its process is stopped: such work needs check()
    Fault(client_stopped, LOST, ("checks",)),
    Fault(loop_blocked, LOST, ("blocks",)),
    Fault(client_killed, KILLED),
    Fault(answers_lost, LOST),
    Fault(grant_lost, HELD),
    Fault(quorum_lost, LOST),
    Fault(servers_stopped, LOST),
    Fault(servers_killed, LOST),
    Fault(lock_taken_away, LOST),
    Fault(replica_killed, HELD),
    Fault(replica_stopped, HELD),
    Fault(nodes_stopped, HELD),
]


def ends_as_expected(one: Try, expected: int | str) -> None:
    if expected == HELD:
        assert one.process.poll() is None, "it has lost its lock"
        one.process.kill()
    status = one.process.wait(WAIT_S)
    if expected != HELD:
        assert status == expected, f"it ended with {status}, not {expected}"


def one_round(world: World, fault: Fault, names: list[str]) -> list[float]:
    """How long before the end of the validity each ended. Raises
    AssertionError."""
    tries = [Try(world, fault.how[i % len(fault.how)], name)
             for i, name in enumerate(names)]
    try:
        for one in tries:
            one.wait_working()
        time.sleep(random.random() * TTL_S)
        fault.do(world, tries)
        for one in tries:
            ends_as_expected(one, fault.ends)
    finally:
        for one in tries:
            one.process.kill()
            one.process.wait()
    early = [one.early_ms() for one in tries]
    for ms in early:
        assert ms >= 0, f"it worked {-ms:.1f} ms after the validity"
    return early


def main() -> int:
    with World() as world:
        return play({fault.do.__name__: partial(one_round, world, fault)
                     for fault in FAULTS}, int(sys.argv[1]), sys.argv[2:],
                    world.folder / "log", "work")


if __name__ == "__main__":
    sys.exit(main())
