# SPDX-License-Identifier: MIT
"""aioredlock; tasks share one manager.

What its documentation leaves open is done in the fastest way found. It takes
open connections as well as addresses: one to each node, that all tasks share,
does two to three times the cycles of a pool at 64 clients and more, be it of
10, of 100 (its default) or of 256. With uvloop a cycle takes a quarter less CPU
time for one client, and no more for many.
"""
import asyncio
import sys
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "clients/python"))
warnings.simplefilter("ignore")  # it imports distutils

import aioredis  # noqa: E402
import uvloop  # noqa: E402
from aioredlock import Aioredlock, LockError  # noqa: E402

from tally import CLIENTS, TTL_S, WHERE, Tally  # noqa: E402


async def main():
    manager = Aioredlock([await aioredis.create_redis(f"redis://{node}")
                          for node in WHERE])
    tally = Tally()

    async def work(number):
        for name in tally.names(number):
            try:
                await manager.unlock(await manager.lock(name, lock_timeout=TTL_S))
            except LockError:
                tally.failures += 1

    await asyncio.gather(*map(work, range(CLIENTS)))
    tally.report()
    await manager.destroy()

uvloop.run(main())
