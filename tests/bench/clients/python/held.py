"""Many short locks held at once by one process, beside others that want every
core: none may be lost, and what it costs the process to keep them. Needs redlockd
(the package), and redlockd (the binary) built:

  PYTHONPATH=tests/lib [LOCKS=1000 TTL=3 SECONDS_RUN=60 BUSY=2] held.py [KIND…]

KIND is asyncio or threads. Ends with 1 if a lock was lost.
"""
from __future__ import annotations

import asyncio
import os
import resource
import subprocess
import sys
import threading
import time
from pathlib import Path

LOCKS = int(os.environ.get("LOCKS") or 1000)
TTL_S = float(os.environ.get("TTL") or 3)
SECONDS = float(os.environ.get("SECONDS_RUN") or 60)
AT_ONCE = int(os.environ.get("AT_ONCE") or 20)  # acquired, by asyncio
BUSY = int(os.environ.get("BUSY") or os.cpu_count() or 2)
KINDS = "asyncio", "threads"


# ---- the process that holds them --------------------------------------------

def cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Watch:
    """Looks at the locks now and then: how close each came to its end."""

    def __init__(self, locks: list) -> None:
        self.locks = locks
        self.least_s = TTL_S
        self.began, self.began_cpu_s = time.monotonic(), cpu_s()
        self.until = self.began + SECONDS

    def look(self) -> bool:
        """Whether to go on."""
        self.least_s = min(self.least_s, *(lock.remaining for lock in self.locks))
        return time.monotonic() < self.until

    def tell(self, losses: list) -> None:
        seconds = time.monotonic() - self.began
        used_s = cpu_s() - self.began_cpu_s
        print(f"locks {len(self.locks)} lost {len(losses)}",
              f"cpu_percent {100 * used_s / seconds:.1f}",
              f"least_remaining_ms {1000 * self.least_s:.0f}",
              f"threads {threading.active_count()}", flush=True)


def hold_in_threads(url: str) -> None:
    from redlockd import Client, Lock

    losses: list = []
    with Client(url) as client:
        locks = [Lock(f"held:{number}", ttl=TTL_S, client=client,
                      on_loss=losses.append) for number in range(LOCKS)]
        for lock in locks:
            lock.acquire()
        watch = Watch(locks)
        while watch.look():
            time.sleep(0.2)
        watch.tell(losses)
        os._exit(0)


async def hold_in_asyncio(url: str) -> None:
    from redlockd import AsyncClient, AsyncLock

    losses: list = []
    async with AsyncClient(url) as client:
        locks = [AsyncLock(f"held:{number}", ttl=TTL_S, client=client,
                           on_loss=losses.append) for number in range(LOCKS)]
        # some at a time, as a program comes to hold many
        for first in range(0, LOCKS, AT_ONCE):
            await asyncio.gather(*(lock.acquire()
                                   for lock in locks[first:first + AT_ONCE]))
        watch = Watch(locks)
        while watch.look():
            await asyncio.sleep(0.2)
        watch.tell(losses)
        os._exit(0)


# ---- all around it ----------------------------------------------------------

def burn() -> None:
    while True:
        pass


def measure(kind: str) -> int:
    from measure import output
    from processes import end, spawn
    from stack import started

    with started(log_level="error") as stack:
        url = f"http://127.0.0.1:{stack.start_server(0)}"
        busy = [spawn(sys.executable, __file__, "burn") for _ in range(BUSY)]
        try:
            run = output(sys.executable, __file__, "hold", kind, url)
        finally:
            for child in busy:
                end(child)
    print(kind, *(f"{name} {value:g}" for name, value in run.items()), flush=True)
    return int(run["lost"])


def main() -> None:
    words = sys.argv[1:]
    if words == ["burn"]:
        burn()
    elif words[:1] == ["hold"]:
        kind, url = words[1:]
        if kind == "threads":
            hold_in_threads(url)
        else:
            asyncio.run(hold_in_asyncio(url))
    else:
        sys.path.insert(0, str(Path(__file__).parents[2]))
        lost = [measure(kind) for kind in words or KINDS]
        sys.exit(1 if any(lost) else 0)


main()
