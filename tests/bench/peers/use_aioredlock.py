"""aioredlock, measured as ../load.c measures redlockd: cycles of acquire and
release by tasks that share one manager.

use_aioredlock.py CLIENTS SECONDS HOST:PORT…

What its documentation leaves open is done in the fastest way found. It takes
open connections as well as addresses: one to each node, that all tasks share,
does two to three times the cycles of a pool at 64 clients and more, be it of
10, of 100 (its default) or of 256. With uvloop a cycle takes a quarter less CPU
time for one client, and no more for many.
"""
import asyncio
import os
import resource
import sys
import time
import warnings

warnings.simplefilter("ignore")  # it imports distutils

import aioredis  # noqa: E402
import uvloop  # noqa: E402
from aioredlock import Aioredlock, LockError  # noqa: E402

TTL_S = 30
WARM_UP_S = 0.5


class Tally:
    """Of all clients; cycles that end from `begin` to `end` count."""

    def __init__(self, seconds):
        self.begin = time.monotonic() + WARM_UP_S
        self.end = self.begin + seconds
        self.us = []
        self.cycles = 0
        self.failures = 0

    def percentile(self, percent):
        """Sorted before."""
        rank = len(self.us) * percent // 100
        return self.us[rank] if self.us else 0

    def report(self, used_us):
        """As sample_report in ../sample.c."""
        self.us.sort()
        per_s = len(self.us) / (self.end - self.begin)
        print(f"cycles_per_s {per_s:.0f} cycles {self.cycles}",
              f"failures {self.failures} p50_us {self.percentile(50)}",
              f"p99_us {self.percentile(99)} client_cpu_us {used_us}")


def cpu_us():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return int((used.ru_utime + used.ru_stime) * 1e6)


async def client(manager, number, tally):
    cycle = 0
    while (start := time.monotonic()) < tally.end:
        name = f"bench:{os.getpid():x}:{number}:{cycle}"
        cycle += 1
        tally.cycles += 1
        try:
            lock = await manager.lock(name, lock_timeout=TTL_S)
            await manager.unlock(lock)
        except LockError as error:
            print(f"aioredlock: {error!r}", file=sys.stderr)
            tally.failures += 1
            continue
        now = time.monotonic()
        if tally.begin <= now < tally.end:
            tally.us.append(int((now - start) * 1e6))


async def main():
    clients, seconds = int(sys.argv[1]), float(sys.argv[2])
    manager = Aioredlock([await aioredis.create_redis(f"redis://{node}")
                          for node in sys.argv[3:]])
    before_us = cpu_us()  # imports are no part of a cycle
    tally = Tally(seconds)
    await asyncio.gather(*(client(manager, number, tally)
                           for number in range(clients)))
    tally.report(cpu_us() - before_us)
    await manager.destroy()


uvloop.run(main())
