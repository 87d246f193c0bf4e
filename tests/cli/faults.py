#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`redlockctl run` under faults: does the command ever live longer than the
validity of its lock?

faults.py [TRIES [FAULT...]]

In each try redlockctl runs a command that ignores SIGTERM and writes down the
time while it lives; by the same clock, a proxy notes until when the lock is
valid, and when it is released. Then a fault happens, at a random moment between
two renewals. No process of the command may outlive the validity or the release,
so that two commands never run at the same time; and redlockctl must end as
expected.
"""
from __future__ import annotations

import contextlib
import os
import random
import signal
import struct
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from rounds import play
from world import WAIT_S, World, children, is_alive, now_ns, wait_until

from processes import stopped  # in ../lib

TTL_S = 1.5
LOST, KILLED = 70, -signal.SIGKILL


class Try:
    """One redlockctl with its guard and its command."""

    def __init__(self, world: World, resource: str) -> None:
        self.world, self.resource = world, resource
        self.file = world.folder / resource
        self.ctl = world.run(resource, str(self.file), "stubborn", "daemon", ttl=str(TTL_S),
                             options=("--grace", "0.2"))
        self.guard = self.command = 0

    def wait_alive(self) -> None:
        wait_until(lambda: all(self.stamps_ns()), "the command", WAIT_S)
        [self.guard] = children(self.ctl.pid)
        [self.command] = children(self.guard)
        self.members = [self.command, *children(self.command)]

    def stamps_ns(self) -> tuple[int, ...]:
        try:
            return struct.unpack("=qqq", self.file.read_bytes())
        except (OSError, struct.error):
            return (0, 0, 0)

    def is_over(self) -> bool:
        return not any(map(is_alive, self.members))

    def early_ms(self) -> float:
        """How long before the end of the validity its last sign of life was, or
        before the release, which only processes in other sessions may outlive."""
        *group, daemon = self.stamps_ns()
        ends = [self.world.until_ns[self.resource] - max(*group, daemon)]
        ends += [proxy.released_ns[self.resource] - max(group)
                 for proxy in self.world.proxies
                 if self.resource in proxy.released_ns]
        return min(ends) / 1e6


# ---- the faults: each is done to all tries, and undone where needed ----------

Tries = list[Try]


def wait_over(tries: Tries) -> None:
    wait_until(lambda: all(one.is_over() for one in tries),
               "the end of the commands", WAIT_S)


def redlockctl_killed(_: World, tries: Tries) -> None:
    for one in tries:
        one.ctl.kill()


def redlockctl_stopped(_: World, tries: Tries) -> None:
    """Its whole process group, as by a shell; for longer than the TTL."""
    for one in tries:
        os.killpg(one.ctl.pid, signal.SIGSTOP)
    time.sleep(TTL_S * 1.2)
    wait_over(tries)
    for one in tries:
        os.killpg(one.ctl.pid, signal.SIGCONT)


def guard_killed(_: World, tries: Tries) -> None:
    for one in tries:
        os.kill(one.guard, signal.SIGKILL)


def both_killed(_: World, tries: Tries) -> None:
    """The kernel kills the command, but not what that has started."""
    for one in tries:
        os.kill(one.guard, signal.SIGKILL)
        one.ctl.kill()
    wait_until(lambda: not any(is_alive(one.command) for one in tries),
               "the end of the commands", WAIT_S)
    for one in tries:
        for pid in one.members[1:]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)  # redlockctl has killed it


def guard_stopped(world: World, tries: Tries) -> None:
    """The guard cannot end the command after the answers stop."""
    for one in tries:
        os.kill(one.guard, signal.SIGSTOP)
    answers_lost(world, tries)


def guard_stopped_for_a_while(_: World, tries: Tries) -> None:
    """And then redlockctl, which watches it, is killed."""
    for one in tries:
        os.kill(one.guard, signal.SIGSTOP)
    time.sleep(TTL_S / 3)
    for one in tries:
        os.kill(one.guard, signal.SIGCONT)
        one.ctl.kill()


def answers_lost(world: World, tries: Tries) -> None:
    with world.cut(*world.proxies):
        wait_over(tries)
        for one in tries:
            one.ctl.wait(20)


def acquire_answer_lost(world: World, tries: Tries) -> None:
    """The retry at the other replica gets the same lock."""
    repeats = world.repeats
    with world.cut(world.proxies[0]):
        more = [Try(world, f"{one.resource}.more") for one in tries]
        for one in more:
            one.wait_alive()
    assert world.repeats >= repeats + len(more), "it was granted anew"
    for one in [*tries, *more]:
        one.ctl.kill()
    wait_over(more)


def quorum_lost(world: World, tries: Tries) -> None:
    with stopped(world.nodes[:3]):
        wait_over(tries)
        for one in tries:
            one.ctl.wait(20)
    world.wait_ready()


def lock_taken_away(world: World, tries: Tries) -> None:
    """Somebody else releases it."""
    for one in tries:
        words = Path(f"/proc/{one.command}/environ").read_text().split("\0")
        [token] = [word.partition("=")[2] for word in words
                   if word.startswith("REDLOCKD_TOKEN=")]
        status, _ = world.ask("DELETE", f"/locks/{one.resource}",
                              X_Lock_Token=token)
        assert status == 200, status


def command_killed(_: World, tries: Tries) -> None:
    """What it leaves running in its process group must end before the release;
    processes in a session of their own may go on."""
    for one in tries:
        os.kill(one.command, signal.SIGKILL)
        one.ctl.wait(20)
        for pid in one.members[2:]:
            os.kill(pid, signal.SIGKILL)


def replica_killed(world: World, tries: Tries) -> None:
    """The other replica suffices: no lock is lost within three TTLs."""
    number = random.randrange(2)
    world.kill_server(number)
    time.sleep(TTL_S * 3)
    for one in tries:
        assert one.ctl.poll() is None, "lost with one replica"
        assert now_ns() - min(one.stamps_ns()) < 500e6, "not alive"
        os.kill(one.guard, signal.SIGTERM)  # forwarded, ignored
        one.ctl.kill()
    world.start_server(number)


FAULTS: dict[Callable[[World, Tries], None], int] = {
    redlockctl_killed: KILLED,
    redlockctl_stopped: LOST,
    guard_killed: LOST,
    both_killed: KILLED,
    guard_stopped: LOST,
    guard_stopped_for_a_while: KILLED,
    answers_lost: LOST,
    acquire_answer_lost: KILLED,
    quorum_lost: LOST,
    lock_taken_away: LOST,
    command_killed: 128 + signal.SIGKILL,
    replica_killed: KILLED,
}


def one_round(world: World, fault, status: int, names: list[str]) -> list[float]:
    """How long before the end of the validity each ended. Raises AssertionError."""
    tries = [Try(world, name) for name in names]
    for one in tries:
        one.wait_alive()
    time.sleep(random.random() * TTL_S)
    fault(world, tries)
    wait_over(tries)
    for one in tries:
        got = one.ctl.wait(20)
        assert got == status, f"redlockctl ended with {got}, not {status}"
    early = [one.early_ms() for one in tries]
    for ms in early:
        assert ms >= 0, f"alive {-ms:.1f} ms after the validity"
    return early


def main() -> int:
    tries = int(sys.argv[1]) if len(sys.argv) > 1 else 8
    with World() as world:
        return play({fault.__name__: partial(one_round, world, fault, status)
                     for fault, status in FAULTS.items()}, tries, sys.argv[2:],
                    world.folder / "ctl.log", "sign of life")


if __name__ == "__main__":
    sys.exit(main())
