# SPDX-License-Identifier: MIT
"""Shared locks, and exclusive ones that become shared, for threads and asyncio:
against servers that fail, and real ones."""
from __future__ import annotations

import asyncio
import unittest

import check_live
from fake import WithFake, eventually, problem
from jobs import together
from redlockd import AsyncClient, AsyncLock, Client, Lock, LockHeld, LockLost
from waiting import wait_until

GONE = problem(404, "lock_not_found")
NO_QUORUM = problem(503, "no_quorum", retry_after_ms=10)
NOT_OWNER = problem(409, "not_owner")


class Downgrade(WithFake, unittest.TestCase):
    def test_lost(self):
        losses = []
        for gone in GONE, NOT_OWNER:
            fake = self.fake().on("PUT", gone)
            with self.assertRaises(LockLost) as caught:
                with Lock("a", urls=fake.url, on_loss=losses.append) as lock:
                    with self.assertRaises(LockLost):
                        lock.downgrade()
                    self.assertTrue(lock.lost.is_set())
                    lock.check()
            self.assertEqual(losses.pop(), caught.exception)

    def test_only_while_it_is_held(self):
        fake = self.fake()
        lock = Lock("a", urls=fake.url)
        with self.assertRaises(RuntimeError):
            lock.downgrade()
        with lock:
            pass
        with self.assertRaises(RuntimeError):
            lock.downgrade()
        self.assertEqual(fake.of("PUT"), [])

    def test_by_another_thread_while_it_is_renewed(self):
        fake = self.fake(renew_after_ms=1)
        with Client(fake.url) as client:
            for _ in range(20):
                with Lock("a", client=client) as lock:
                    wait_until(lambda: fake.of("PUT"), "a renewal")
                    together([lock.downgrade])
                    self.assertIn("~", lock.token)
                    self.assertFalse(lock.lost.wait(0.01))
                    self.assertIn("~", lock.token)


class Asyncio(WithFake, unittest.IsolatedAsyncioTestCase):
    async def test_one_that_is_cancelled_is_done_by_the_next_renewal(self):
        fake = self.fake(renew_after_ms=500).on("PUT", NO_QUORUM)
        async with AsyncLock("a", urls=fake.url) as lock:
            task = asyncio.create_task(lock.downgrade())
            await eventually(lambda: fake.of("PUT"), "a request")
            task.cancel()
            await eventually(lambda: lock.shared, "a renewal does it")

    async def test_lost(self):
        fake = self.fake().on("PUT", rest=GONE)
        with self.assertRaises(LockLost):
            async with AsyncLock("a", urls=fake.url) as lock:
                await lock.downgrade()
        self.assertEqual(asyncio.current_task().cancelling(), 0)
        await asyncio.sleep(0.01)

    async def test_a_loss_that_another_task_finds_cancels_the_block(self):
        fake = self.fake().on("PUT", rest=GONE)
        with self.assertRaises(LockLost):
            async with AsyncLock("a", urls=fake.url) as lock:
                task = asyncio.create_task(lock.downgrade())
                await asyncio.sleep(20)
        self.assertIsInstance(task.exception(), LockLost)
        self.assertEqual(asyncio.current_task().cancelling(), 0)


class Live(check_live.Case):
    def wait_for_readers(self, name, count):
        """A node may have a reader a moment later than the others."""
        with Client(self.urls) as client:
            wait_until(lambda: [one.readers for one in client.locks(name)] ==
                       [count], f"{count} readers")

    def test_readers_share_it_and_keep_writers_out(self):
        with Client(self.urls) as one, Client(self.urls[::-1]) as two, \
                Lock("read", shared=True, client=one) as first, \
                Lock("read", shared=True, wait=0, client=two) as second:
            self.assertNotEqual(first.token, second.token)
            self.wait_for_readers("read", 2)
            with self.assertRaises(LockHeld) as caught:
                Lock("read", wait=0, client=one).__enter__()
            self.assertEqual(caught.exception.readers, 2)
        with Lock("read", wait=0, urls=self.urls) as writer:
            self.assertGreater(writer.fencing_token,
                               max(first.fencing_token, second.fencing_token))
            with self.assertRaises(LockHeld):
                Lock("read", wait=0, shared=True, urls=self.urls).__enter__()

    def test_a_downgrade_lets_readers_in_and_is_kept_beyond_its_ttl(self):
        with Lock("down", ttl=1, urls=self.urls) as lock:
            with self.assertRaises(LockHeld):
                Lock("down", shared=True, wait=0, urls=self.urls).__enter__()
            before, number = lock.token, lock.fencing_token
            lock.downgrade()
            self.assertNotEqual(lock.token, before)
            self.assertEqual(lock.fencing_token, number)
            with Lock("down", shared=True, wait=0, urls=self.urls):
                self.wait_for_readers("down", 2)
                with self.assertRaises(LockHeld):
                    Lock("down", wait=2.5, urls=self.urls).__enter__()
            lock.check()
        with Lock("down", wait=0, urls=self.urls):
            pass

    def test_downgrades_beside_renewals(self):
        for turn in range(8):
            with Lock("beside", "besides", ttl=1.5, urls=self.urls) as lock:
                lock.lost.wait(0.496 + turn / 1000)  # about when it is renewed
                lock.downgrade()
                lock.lost.wait(0.2)
                lock.check()

    async def test_in_asyncio(self):
        async with AsyncClient(self.urls) as client, \
                AsyncLock("async", ttl=1, client=client) as lock:
            await lock.downgrade()
            async with AsyncLock("async", shared=True, wait=0, client=client):
                with self.assertRaises(LockHeld):
                    async with AsyncLock("async", wait=2.5, client=client):
                        pass
            lock.check()
