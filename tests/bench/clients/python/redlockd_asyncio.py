# SPDX-License-Identifier: MIT
"""AsyncLock of our package; tasks share one client."""
import asyncio

import uvloop

from tally import CLIENTS, TTL_S, WHERE, Tally, cpu_us


async def first():
    """What the first lock of a process costs, with what it loads."""
    before_us = cpu_us()
    from redlockd import AsyncLock
    async with AsyncLock("bench:first", urls=WHERE):
        pass
    return cpu_us() - before_us


async def main():
    first_us = await first()
    from redlockd import AsyncClient, AsyncLock, RedlockdError

    async def work(number):
        for name in tally.names(number):
            try:
                async with AsyncLock(name, ttl=TTL_S, client=client):
                    pass
            except RedlockdError:
                tally.failures += 1

    async with AsyncClient(WHERE) as client:
        tally = Tally()
        await asyncio.gather(*map(work, range(CLIENTS)))
        tally.report(first_cpu_us=first_us)

uvloop.run(main())
