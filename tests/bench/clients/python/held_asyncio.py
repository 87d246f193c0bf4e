# SPDX-License-Identifier: MIT
"""AsyncLock of our package: locks of one client, held for a while.

  held_asyncio.py COUNT TTL_MS SECONDS URL

It says when it has them all; then, after SECONDS, how many were lost by then and
the CPU time since. Only then it releases them.
"""
import asyncio
import sys
from contextlib import suppress

import uvloop
from redlockd import AsyncClient, AsyncLock, LockLost

from tally import cpu_us

COUNT, TTL_S, SECONDS = int(sys.argv[1]), int(sys.argv[2]) / 1000, float(sys.argv[3])
AT_A_TIME = 64  # acquires and releases


async def main():
    lost = []

    async def for_each(todo):
        left = iter(locks)

        async def work():
            for lock in left:
                await todo(lock)
        await asyncio.gather(*(work() for _ in range(AT_A_TIME)))

    async def release(lock):
        with suppress(LockLost):
            await lock.release()

    async with AsyncClient(sys.argv[4]) as client:
        locks = [AsyncLock(f"bench:held:{number}", ttl=TTL_S, client=client,
                           on_loss=lost.append) for number in range(COUNT)]
        await for_each(AsyncLock.acquire)
        print("held", COUNT, flush=True)
        before_us = cpu_us()
        await asyncio.sleep(SECONDS)
        print("lost", len(lost), "cpu_us", cpu_us() - before_us, flush=True)
        await for_each(release)

uvloop.run(main())
