#!/usr/bin/env python3
"""Several `redlockctl run` want the same lock, while their processes are killed
and stopped at random: do two commands ever run at the same time?

contended.py [RUNS [SEED]]

Each command and all of its processes hold a flock on one file: if it is taken
already, two commands overlap.
"""
from __future__ import annotations

import os
import random
import signal
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from subprocess import Popen

from world import WAIT_S, World, children, is_alive, wait_until

from jobs import together  # in ../lib

CLIENTS = 4
TTL_S = 1.0
LOST, KILLED, ENDED = 70, -signal.SIGKILL, 128 + signal.SIGTERM


def ask_to_end(ctl: Popen, _: int) -> None:
    ctl.terminate()


def kill_redlockctl(ctl: Popen, _: int) -> None:
    ctl.kill()


def kill_guard(_: Popen, guard: int) -> None:
    os.kill(guard, signal.SIGKILL)


def kill_command(_: Popen, guard: int) -> None:
    for command in children(guard):
        os.kill(command, signal.SIGKILL)


def stop_redlockctl(ctl: Popen, _: int) -> None:
    ctl.send_signal(signal.SIGSTOP)
    time.sleep(TTL_S * 1.5)
    ctl.send_signal(signal.SIGCONT)


def stop_and_kill(ctl: Popen, guard: int) -> None:
    """The guard is stopped; redlockctl, which watches it, is killed later."""
    os.kill(guard, signal.SIGSTOP)
    time.sleep(TTL_S / 2)
    os.kill(guard, signal.SIGCONT)
    ctl.kill()


ENDS: dict[Callable[[Popen, int], None], set[int]] = {
    ask_to_end: {ENDED},
    kill_redlockctl: {KILLED},
    kill_guard: {LOST},
    kill_command: {128 + signal.SIGKILL},
    stop_redlockctl: {LOST},
    stop_and_kill: {KILLED},
}


class Contest:
    def __init__(self, world: World, runs: int, seed: int) -> None:
        self.world, self.left, self.random = world, runs, random.Random(seed)
        self.witness = world.folder / "witness"
        self.lock = threading.Lock()
        self.ends: Counter[str] = Counter()
        self.problems: list[str] = []

    def draw(self) -> tuple[int, Callable, float, bool] | None:
        """Number, end, when, and whether it ignores SIGTERM; None: no more."""
        with self.lock:
            if self.left == 0 or self.problems:
                return None
            self.left -= 1
            end = self.random.choice(list(ENDS))
            return (self.left, end, self.random.random() * TTL_S / 2,
                    end is not ask_to_end and self.random.random() < 0.5)

    def play(self, number: int, end: Callable, after_s: float,
             is_stubborn: bool) -> None:
        file = self.world.folder / f"run{number}"
        words = ["stubborn"] if is_stubborn else []
        ctl = self.world.run("contended", str(file), *words, "witness",
                             str(self.witness), ttl=str(TTL_S), wait="300",
                             options=("--grace", "0.2"))
        wait_until(lambda: ctl.poll() is not None or is_beating(file),
                   "a turn", 290)
        if ctl.poll() is None:
            [guard] = children(ctl.pid)
            members = [guard, *children(guard)]
            time.sleep(after_s)
            end(ctl, guard)
            wait_until(lambda: not any(map(is_alive, members)) and
                       ctl.poll() is not None, "the end of a run", WAIT_S)
        with self.lock:
            self.ends[end.__name__] += 1
            if ctl.returncode not in ENDS[end]:
                self.problems.append(f"run {number}, {end.__name__}: "
                                     f"redlockctl ended with {ctl.returncode}")
            if self.witness.stat().st_size > 0:
                self.problems.append(f"two commands ran at once, about run "
                                     f"{number}, {end.__name__}")

    def work(self) -> None:
        try:
            while (drawn := self.draw()) is not None:
                self.play(*drawn)
        except (TimeoutError, OSError, ValueError) as problem:
            with self.lock:
                self.problems.append(repr(problem))


def is_beating(file: Path) -> bool:
    try:
        return all(struct.unpack("=qqq", file.read_bytes())[:2])
    except (OSError, struct.error):
        return False


def main() -> int:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(1 << 32)
    with World() as world:
        contest = Contest(world, runs, seed)
        together([contest.work] * CLIENTS)
        log = (world.folder / "ctl.log").read_text()[-2000:]
    said = ", ".join(f"{count} {name}"
                     for name, count in sorted(contest.ends.items()))
    if contest.problems:
        print(f"FAIL  seed {seed}: {contest.problems}\n{log}")
    else:
        print(f"ok    {contest.ends.total()} contended runs, seed {seed}, and "
              f"no overlap: {said}")
    failed = 1 if contest.problems or contest.ends.total() != runs else 0
    print(f"{1 - failed} passed, {failed} failed")
    return failed


if __name__ == "__main__":
    sys.exit(main())
