"""Shared locks, and exclusive ones that become shared, for threads and asyncio:
against servers that fail, and real ones."""
from __future__ import annotations

import asyncio
import unittest

import check_live
from fake import WithFake, grant, late, problem
from jobs import together
from redlockd import (AsyncClient, AsyncLock, Client, Lock, LockHeld, LockLost)
from waiting import wait_until

GONE = problem(404, "lock_not_found")
NO_QUORUM = problem(503, "no_quorum", retry_after_ms=10)
NOT_OWNER = problem(409, "not_owner")


class Case(WithFake, unittest.TestCase):
    def downgrade_beside_a_renewal(self, answer):
        """The renewal is answered after the downgrade."""
        fake = self.fake(renew_after_ms=10)
        long = grant(renew_after_ms=60000, validity_ms=90000)
        fake.on("PUT", late(0.5, answer), rest=long)
        with Lock("a", urls=fake.url) as lock:
            wait_until(lambda: fake.of("PUT"), "a renewal")
            exclusive = lock.token
            lock.downgrade()
            shared = lock.token
            self.assertNotEqual(shared, exclusive)
            self.assertEqual(len(fake.of("PUT")), 2)
            self.assertFalse(lock.lost.wait(1))
            self.assertEqual(lock.token, shared)
            self.assertGreater(lock.remaining, 60)
        first, second, *more = fake.of("PUT")
        self.assertEqual(first.headers["x-lock-token"], exclusive)
        self.assertNotIn("mode", first.body)
        self.assertEqual(second.body["mode"], "shared")
        self.assertEqual(fake.of("DELETE")[0].headers["x-lock-token"], shared)
        return more


class Shared(Case):
    def test_the_mode_is_sent(self):
        fake = self.fake(renew_after_ms=10)
        with Lock("a", "b", shared=True, urls=fake.url) as lock:
            self.assertTrue(lock.shared)
            wait_until(lambda: len(fake.of("PUT")) >= 2, "renewals")
            lock.downgrade()  # it is shared already
        self.assertEqual(fake.of("POST")[0].body["mode"], "shared")
        with Lock("a", urls=fake.url) as lock:
            self.assertFalse(lock.shared)
        self.assertNotIn("mode", fake.of("POST")[1].body)

    def test_a_permit_is_not_shared(self):
        with self.assertRaises(ValueError):
            Lock("a", limit=2, shared=True)

    def test_readers_are_told(self):
        fake = self.fake()
        for readers, text in (1, "by a reader"), (2, "by 2 readers"):
            fake.on("POST", problem(409, "lock_held", held_by={
                "mode": "shared", "readers": readers, "remaining_ms": 1500}))
            with self.assertRaisesRegex(LockHeld, text) as caught:
                Lock("a", wait=0, urls=fake.url).__enter__()
            self.assertEqual(caught.exception.readers, readers)
            self.assertIsNone(caught.exception.owner)


class Downgrade(Case):
    def test_the_new_token_is_used(self):
        fake = self.fake(ttl_ms=1234, renew_after_ms=100)
        with Lock("a", urls=fake.url) as lock:
            exclusive = lock.token
            lock.downgrade()
            shared = lock.token
            self.assertTrue(lock.shared)
            self.assertNotEqual(shared, exclusive)
            begun = len(fake.of("PUT"))
            wait_until(lambda: len(fake.of("PUT")) > begun, "a renewal")
        *_, one, renewal = fake.of("PUT")
        self.assertEqual(one.body, {"ttl_ms": 1234, "mode": "shared"})
        self.assertEqual(renewal.headers["x-lock-token"], shared)
        self.assertEqual(fake.of("DELETE")[0].headers["x-lock-token"], shared)

    def test_a_renewal_that_finds_another_token_loses_nothing(self):
        [again] = self.downgrade_beside_a_renewal(NOT_OWNER)
        self.assertEqual(again.body["mode"], "shared")
        self.assertIn("~", again.headers["x-lock-token"])

    def test_a_renewal_that_is_answered_late_keeps_the_new_token(self):
        self.assertEqual(self.downgrade_beside_a_renewal(grant(
            token="1795221641865000.0123456789abcdef", validity_ms=5000,
            renew_after_ms=60000)), [])

    def test_the_new_token_is_a_renewals_if_its_answer_is_first(self):
        fake = self.fake(renew_after_ms=100)
        fake.on("PUT", late(1, grant(validity_ms=5000)),
                grant(renew_after_ms=60000, validity_ms=90000))
        with Lock("a", urls=fake.url) as lock:
            lock.downgrade()
            self.assertEqual(len(fake.of("PUT")), 2)
            self.assertGreater(lock.remaining, 60)
        for put in fake.of("PUT"):
            self.assertEqual(put.body["mode"], "shared")

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
    async def test_the_mode_is_sent(self):
        fake = self.fake()
        async with AsyncLock("a", shared=True, urls=fake.url) as lock:
            self.assertTrue(lock.shared)
        self.assertEqual(fake.of("POST")[0].body["mode"], "shared")

    async def test_a_downgrade_beside_a_renewal(self):
        fake = self.fake(renew_after_ms=10)
        fake.on("PUT", late(0.5, NOT_OWNER), grant(renew_after_ms=60000),
                grant(renew_after_ms=60000))
        async with AsyncLock("a", urls=fake.url) as lock:
            while not fake.of("PUT"):
                await asyncio.sleep(0.01)
            await lock.downgrade()
            shared = lock.token
            while len(fake.of("PUT")) < 3:
                await asyncio.sleep(0.01)
            self.assertEqual(lock.token, shared)
        self.assertEqual(fake.of("PUT")[2].headers["x-lock-token"], shared)
        self.assertEqual(fake.of("DELETE")[0].headers["x-lock-token"], shared)

    async def test_one_that_is_cancelled_is_done_by_the_next_renewal(self):
        fake = self.fake(renew_after_ms=500).on("PUT", NO_QUORUM)
        async with AsyncLock("a", urls=fake.url) as lock:
            task = asyncio.create_task(lock.downgrade())
            while not fake.of("PUT"):
                await asyncio.sleep(0)
            task.cancel()
            while not lock.shared:
                await asyncio.sleep(0.01)

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

    async def test_only_while_it_is_held(self):
        lock = AsyncLock("a", urls=self.fake().url)
        with self.assertRaises(RuntimeError):
            await lock.downgrade()


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

    def test_kept_beyond_its_ttl(self):
        with Lock("kept", shared=True, ttl=1, urls=self.urls) as lock:
            with self.assertRaises(LockHeld):
                Lock("kept", wait=2.5, urls=self.urls).__enter__()
            lock.check()

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
