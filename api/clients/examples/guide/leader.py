# SPDX-License-Identifier: MIT
"""One of several processes leads, and counts the seconds of its term. When it
ends or loses its lock, another one leads.  leader.py NAME"""
import asyncio
import os
import signal
import sys

import httpx
from redlockd import AsyncLock, LockLost

TTL_S = float(os.environ.get("LOCK_TTL_S", 10))
OWNER = sys.argv[1] if len(sys.argv) > 1 else "127.0.0.1:9000"
STORE = os.environ.get("STORE", "http://127.0.0.1:8090")


async def lead(lock: AsyncLock, store: httpx.AsyncClient) -> None:
    print("leads, with fencing token", lock.fencing_token, flush=True)
    headers = {"X-Fencing-Token": str(lock.fencing_token)}
    second = 0
    while True:
        second += 1
        lock.check()  # raises LockLost
        answer = await store.put(f"/leader/{second % 10}", content=OWNER, headers=headers)
        answer.raise_for_status()
        await asyncio.sleep(1)


async def stand_for_election() -> None:
    async with httpx.AsyncClient(base_url=STORE) as store:
        while True:
            try:
                # without wait=, it waits without a limit; a loss cancels lead()
                async with AsyncLock("leader", ttl=TTL_S, owner=OWNER) as lock:
                    await lead(lock, store)
            except LockLost as error:
                print("leads no more:", error, flush=True)
            except httpx.HTTPError as error:
                print("failed:", repr(error), flush=True)
                await asyncio.sleep(1)


async def main() -> None:
    task = asyncio.create_task(stand_for_election())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        await task
    except asyncio.CancelledError:
        pass  # leaving the block has released the lock


asyncio.run(main())
