# SPDX-License-Identifier: MIT
"""The package over five Redis masters and real redlockd, with faults."""
from __future__ import annotations

import asyncio
import logging
import os
import signal
import subprocess
import sys
import threading
import unittest
from functools import partial

from jobs import together
from processes import end, spawn
from redlockd import (AsyncClient, AsyncLock, Client, Lock, LockHeld,
                      LockLost, RequestRefused)
from waiting import wait_until
from world import World

THREADS, TURNS = 8, 12


PERMITS = 3


class Overlap(Exception):
    """Two were in the block at once."""


class Witness:
    """Sees whether two hold a lock at once, and whether numbers rise."""

    def __init__(self) -> None:
        self.inside = 0
        self.number = 0
        self.turns = 0

    def enter(self, number: int) -> None:
        if self.inside or number <= self.number:
            raise Overlap(f"{self.inside} inside, {number} <= {self.number}")
        self.inside, self.number = 1, number

    def leave(self) -> None:
        self.inside = 0
        self.turns += 1


class Case(unittest.IsolatedAsyncioTestCase):
    world: World
    options: tuple[str, ...] = ()  # of the servers

    @classmethod
    def setUpClass(cls):
        logging.getLogger("redlockd").setLevel(logging.CRITICAL)
        cls.world = World.ready(2, *cls.options)
        cls.urls = [f"http://{one.address}" for one in cls.world.servers]

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    def short_lived_server(self):
        """One more, for tests that break it; asked first."""
        server = self.world.start_server()
        self.addCleanup(self.forget, server)
        self.world.settle()
        return server, [f"http://{server.address}", *self.urls]

    def forget(self, server):
        end(server.process)
        self.world.servers.remove(server)

    def wait_until_on_all(self, resource):
        wait_until(lambda: self.world.holders(resource) == len(self.world.nodes),
                   f"{resource} is on all nodes")

    def pause(self, process):
        os.kill(process.pid, signal.SIGSTOP)
        self.addCleanup(self.resume, process)

    def resume(self, process):
        if process.poll() is None:
            os.kill(process.pid, signal.SIGCONT)


class Locks(Case):
    async def test_kept_beyond_its_ttl(self):
        """In asyncio: check_faults.py has threads."""
        async with AsyncLock("async", ttl=2, urls=self.urls) as lock:
            with self.assertRaises(LockHeld):
                async with AsyncLock("async", wait=2.5, urls=self.urls):
                    pass
            lock.check()
        async with AsyncLock("async", wait=0, urls=self.urls) as later:
            self.assertGreater(later.fencing_token, lock.fencing_token)

    def test_several_at_once_of_any_characters(self):
        with Lock("b", "a/b ü?#%", urls=self.urls):
            for held in ["a/b ü?#%"], ["b"], ["c", "b"]:
                with self.assertRaises(LockHeld):
                    Lock(*held, wait=0, urls=self.urls).__enter__()
        with Lock("a/b ü?#%", wait=0, urls=self.urls):
            pass

    async def test_listed_and_released_by_force(self):
        with self.assertRaises(LockLost), Client(self.urls) as client, \
                Lock("force:b", "force:a", owner="me", client=client) as lock:
            # until then, one may be missing
            for name in "force:a", "force:b":
                self.wait_until_on_all(name)
            found = sorted(client.locks("force:"), key=lambda one: one.resources)
            self.assertEqual([one.resources for one in found],
                             [("force:a",), ("force:b",)])
            async with AsyncClient(self.urls) as other:
                self.assertEqual({one.id async for one in other.locks("force:")},
                                 {one.id for one in found})
            one = found[0]
            self.assertEqual((one.owner, one.fencing_token),
                             ("me", lock.fencing_token))
            self.assertFalse(client.force_release(one.id, lock.fencing_token - 1))
            for one in found:
                self.assertTrue(client.force_release(one.id, lock.fencing_token))
                wait_until(lambda one=one: not client.force_release(
                    one.id, lock.fencing_token), "it is gone from all nodes")
            self.assertEqual(list(client.locks("force:")), [])
            with Lock("force:a", wait=0, client=client):
                pass

    def test_all_readers_released_by_force(self):
        with self.assertRaises(LockLost), Client(self.urls) as client, \
                Lock("force:all", shared=True, client=client):
            self.assertTrue(client.force_release("force:all", "all"))
            with Lock("force:all", wait=0, client=client):
                self.assertFalse(client.force_release("force:all", "all"))

    def test_threads_take_turns(self):
        witness = Witness()

        def work(urls):
            with Client(urls) as client:
                for _ in range(TURNS):
                    with Lock("turns", ttl=4, client=client) as lock:
                        witness.enter(lock.fencing_token)
                        threading.Event().wait(0.001)
                        witness.leave()

        self.pause(self.world.nodes[0].process)
        orders = self.urls, self.urls[::-1]
        together(partial(work, orders[number % 2]) for number in range(THREADS))
        self.assertEqual(witness.turns, THREADS * TURNS)

    async def test_tasks_take_turns(self):
        witness = Witness()

        async def work(client):
            for _ in range(TURNS):
                async with AsyncLock("tasks", ttl=4, client=client) as lock:
                    witness.enter(lock.fencing_token)
                    await asyncio.sleep(0.001)
                    witness.leave()

        async with AsyncClient(self.urls) as one, \
                AsyncClient(self.urls[::-1]) as two:
            await asyncio.gather(*[work(one if number % 2 else two)
                                   for number in range(THREADS)])
        self.assertEqual(witness.turns, THREADS * TURNS)

    def test_threads_share_a_pool(self):
        slots = set()
        most = 0
        guard = threading.Lock()

        def work(urls):
            nonlocal most
            with Client(urls) as client:
                for _ in range(TURNS):
                    with Lock("pool", limit=PERMITS, client=client) as lock:
                        with guard:
                            self.assertNotIn(lock.slot, slots)
                            slots.add(lock.slot)
                            most = max(most, len(slots))
                        lock.lost.wait(0.002)
                        with guard:
                            slots.remove(lock.slot)

        together([partial(work, self.urls)] * THREADS)
        self.assertEqual(most, PERMITS)

    async def test_permits_in_asyncio(self):
        async with AsyncLock("apool", limit=2, urls=self.urls) as one, \
                AsyncLock("apool", limit=2, urls=self.urls) as other:
            self.assertEqual({one.slot, other.slot}, {0, 1})
            with self.assertRaises(LockHeld):
                async with AsyncLock("apool", limit=2, wait=0, urls=self.urls):
                    pass

    async def test_who_is_cancelled_while_it_waits_leaves_the_queue(self):
        async with AsyncLock("left", urls=self.urls):
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(0.3):
                    async with AsyncLock("left", urls=self.urls):
                        self.fail("was acquired")
        # else the server would grant it to the one that has left
        async with AsyncLock("left", wait=5, urls=self.urls):
            pass


class Many(Case):
    """Held by one process, while others want all cores. Longer and shorter
    ones, and more: make bench-clients BUSY=2."""

    COUNT, TTL_S, HOLD_S = 150, 5, 9
    options = "--max-ttl-ms", "60000"

    def setUp(self):
        for _ in range(os.cpu_count() or 1):
            child = spawn(sys.executable, "-c", "while True: pass")
            self.addCleanup(end, child)

    def test_none_is_lost_by_threads(self):
        lost = []
        with Client(self.urls) as client:
            locks = [Lock(f"held:{number}", ttl=self.TTL_S, client=client,
                          on_loss=lost.append) for number in range(self.COUNT)]
            together(lock.acquire for lock in locks)
            threading.Event().wait(self.HOLD_S)
            self.assertLess(threading.active_count(), 20)
            together(lock.release for lock in locks)
        self.assertEqual(lost, [])

    async def test_none_is_lost_by_asyncio(self):
        lost = []
        async with AsyncClient(self.urls) as client:
            locks = [AsyncLock(f"held:{number}", ttl=self.TTL_S, client=client,
                               on_loss=lost.append)
                     for number in range(self.COUNT)]
            await asyncio.gather(*[lock.acquire() for lock in locks])
            await asyncio.sleep(self.HOLD_S)
            await asyncio.gather(*[lock.release() for lock in locks])
        self.assertEqual(lost, [])


class Together(Case):
    """Calls of one client, over real servers."""

    COUNT = 30
    options = "--max-ttl-ms", "60000"

    def test_threads_get_what_each_asked_for(self):
        def work(number):
            for turn in range(TURNS):
                kind = (number + turn) % 4
                with Lock(*[[f"own:{number}"], ["few"], ["read"],
                            [f"two:{number}", f"more:{number}"]][kind], ttl=10,
                          limit=self.COUNT if kind == 1 else None,
                          shared=kind == 2, client=client) as lock:
                    seen.append(lock.token)
                    lock.check()
                    if kind == 3:
                        lock.downgrade()
                    lock.extend(10, replace_ttl=True)
                    lock.check()

        seen = []
        with Client(self.urls) as client:
            together(partial(work, number) for number in range(self.COUNT))
            wait_until(lambda: not list(client.locks()), "all are released")
        self.assertEqual(len(set(seen)), self.COUNT * TURNS)

    async def test_tasks_that_are_cancelled_leave_no_lock_behind(self):
        async def work(number):
            async with AsyncLock(f"left:{number % 7}", ttl=60, client=client):
                await asyncio.sleep(0.001)

        async with AsyncClient(self.urls) as client:
            for turn in range(TURNS):
                tasks = [asyncio.create_task(work(number))
                         for number in range(self.COUNT)]
                await asyncio.sleep(turn * 0.002)
                for task in tasks[::2]:
                    task.cancel()
                done = await asyncio.gather(*tasks, return_exceptions=True)
                for one in done[1::2]:
                    self.assertIsNone(one)
            # else each waits for the TTL of one that was left behind
            for number in range(7):
                async with AsyncLock(f"left:{number}", wait=20, client=client):
                    pass

    def test_one_bad_wish_among_good_ones(self):
        def work(number):
            lock = Lock("x" * 5000 if number % 10 == 0 else f"good:{number}",
                        ttl=10, wait=5, client=client)
            if number % 10:
                with lock:
                    lock.check()
            else:
                with self.assertRaises(RequestRefused):
                    lock.acquire()

        with Client(self.urls) as client:
            together(partial(work, number) for number in range(self.COUNT))


class Faults(Case):
    def forget_lock(self, resource):
        """All nodes forget it, once all have it: two get it later."""
        self.wait_until_on_all(resource)
        self.world.vacate(resource, self.world.nodes)

    async def test_a_replica_hangs_while_the_lock_is_held(self):
        server, urls = self.short_lived_server()
        async with AsyncLock("hangs", ttl=4, urls=urls) as lock:
            until = lock._held.grant.until
            self.pause(server.process)
            while lock._held.grant.until < until + 4:
                await asyncio.sleep(0.05)
            lock.check()

    def test_a_replica_hangs_before_the_lock_is_acquired(self):
        server, urls = self.short_lived_server()
        self.pause(server.process)
        with Client(urls, timeout=1) as client:
            with Lock("hung", wait=0, client=client):
                pass

    async def test_a_lock_that_the_nodes_forgot_in_asyncio(self):
        with self.assertRaises(LockLost):
            async with AsyncLock("forgot", ttl=4, urls=self.urls):
                self.forget_lock("forgot")
                await asyncio.sleep(20)


class Stopped(Case):
    """An event loop that sleeps longer than its TTL. Threads: check_faults.py."""

    CODE = """
import asyncio, sys
from redlockd import AsyncLock

async def main():
    async with AsyncLock("stopped", ttl=1, urls=sys.argv[1:]) as lock:
        print("held", flush=True)
        await asyncio.sleep(20)
        print("wrote", flush=True)
asyncio.run(main())
"""

    def test_it_is_told_when_it_wakes(self):
        child = spawn(sys.executable, "-c", self.CODE, *self.urls,
                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(end, child)
        self.assertEqual(child.stdout.readline(), "held\n")
        self.pause(child)
        with Lock("stopped", ttl=4, urls=self.urls):
            self.resume(child)
            out, error = child.communicate(timeout=20)
        self.assertEqual(out, "")
        self.assertIn("LockLost", error)
