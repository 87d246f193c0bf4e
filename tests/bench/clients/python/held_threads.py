# SPDX-License-Identifier: MIT
"""Lock of our package: as held_asyncio.py."""
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

from redlockd import Client, Lock, LockLost

from tally import cpu_us

COUNT, TTL_S, SECONDS = int(sys.argv[1]), int(sys.argv[2]) / 1000, float(sys.argv[3])
AT_A_TIME = 64  # acquires and releases


def release(lock):
    with suppress(LockLost):
        lock.release()


lost = []
with Client(sys.argv[4]) as client, ThreadPoolExecutor(AT_A_TIME) as pool:
    locks = [Lock(f"bench:held:{number}", ttl=TTL_S, client=client,
                  on_loss=lost.append) for number in range(COUNT)]
    list(pool.map(Lock.acquire, locks))
    print("held", COUNT, flush=True)
    before_us = cpu_us()
    time.sleep(SECONDS)
    print("lost", len(lost), "cpu_us", cpu_us() - before_us, flush=True)
    list(pool.map(release, locks))
