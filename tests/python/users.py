# SPDX-License-Identifier: MIT
"""Who uses locks: threads, and an event loop in a thread of its own."""
from __future__ import annotations

import asyncio
import functools
import threading
from concurrent.futures import ThreadPoolExecutor

from redlockd import AsyncClient, AsyncLock, Client, Lock

LIMIT_S = 20


class User:
    """The same calls for both kinds of clients; each returns a future."""

    def take(self, name="a", **how):
        """Waits for it, as give() does."""
        return self.acquire(name, **how).result(LIMIT_S)

    def give(self, lock):
        self.release(lock).result(LIMIT_S)


class Threads(User):
    def __init__(self, *words, **named):
        self.client = Client(*words, **named)
        self.pool = ThreadPoolExecutor(64)

    def lock(self, name, **how):
        return Lock(name, client=self.client, **how)

    def start(self, work):
        return self.pool.submit(work)

    def acquire(self, name, **how):
        lock = self.lock(name, **how)
        return self.start(lambda: lock.acquire() and lock)

    def release(self, lock):
        return self.start(lock.release)

    @property
    def queued(self):
        return len(self.client._courier()._queue._calls)

    def shut(self):
        self.client.close()

    def end(self):
        self.client.close()
        self.pool.shutdown()


class Loop(User):
    def __init__(self, *words, **named):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        self.client = AsyncClient(*words, **named)

    def lock(self, name, **how):
        return AsyncLock(name, client=self.client, **how)

    def start(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def acquire(self, name, **how):
        lock = self.lock(name, **how)

        async def work():
            return await lock.acquire() and lock
        return self.start(work())

    def release(self, lock):
        return self.start(lock.release())

    @property
    def queued(self):
        carrier = self.client._carrier
        return len(carrier._queue._calls) if carrier else 0

    def shut(self):
        self.start(self.client.aclose()).result(LIMIT_S)

    def end(self):
        self.shut()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join(LIMIT_S)
        self.loop.close()


def each_kind(test):
    @functools.wraps(test)
    def run(self):
        for kind in kinds(self):
            test(self, kind)
    return run


def kinds(test):
    for kind in Threads, Loop:
        with test.subTest(kind.__name__):
            yield kind
