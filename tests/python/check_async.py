# SPDX-License-Identifier: MIT
"""AsyncLock and AsyncClient: what differs from Lock, above all cancellation."""
from __future__ import annotations

import asyncio
import time
import unittest

from fake import (WithFake, after_release, cut, eventually, problem, silent,
                  trickle)
from odd import OddServer, answer, grant
from redlockd import AsyncClient, AsyncLock, LockLost
from redlockd._clock import now

GONE = problem(404, "lock_not_found")
NO_QUORUM = problem(503, "no_quorum", retry_after_ms=10)


class Case(WithFake, unittest.IsolatedAsyncioTestCase):
    def assert_not_cancelled(self):
        """Nothing of a cancellation is left in this task."""
        self.assertEqual(asyncio.current_task().cancelling(), 0)


class Life(Case):
    async def test_acquires_extends_and_releases(self):
        fake = self.fake(renew_after_ms=20, ttl_ms=1234)
        async with AsyncLock("a", "b", ttl=3, wait=5, owner="web-3",
                             urls=fake.url) as lock:
            await eventually(lambda: len(fake.of("PUT")) >= 3, "renewals")
            lock.check()
            self.assertGreater(lock.remaining, 20)
            token = lock.token
        post, put, delete = (fake.of(method)[0]
                             for method in ("POST", "PUT", "DELETE"))
        self.assertEqual(post.body["resources"], ["a", "b"])
        self.assertEqual(put.body, {"ttl_ms": 1234})
        self.assertEqual(put.headers["x-lock-token"], token)
        self.assertEqual(delete.headers["x-lock-token"], token)

    async def test_not_twice_at_a_time(self):
        lock = AsyncLock("a", urls=self.fake().url)
        async with lock:
            with self.assertRaises(RuntimeError):
                await lock.__aenter__()
        async with lock:
            lock.check()

    async def test_the_lock_had_ended_before_the_release(self):
        fake = self.fake().on("DELETE", GONE)
        with self.assertRaises(LockLost):
            async with AsyncLock("a", urls=fake.url):
                pass


class Loss(Case):
    async def lose(self, fake):
        """Holds a lock until it is lost; how long before its work had to
        end."""
        with self.assertRaises(LockLost):
            async with AsyncLock("a", urls=fake.url) as lock:
                until = lock._held.grant.work_until
                try:
                    await asyncio.sleep(20)
                finally:
                    at = now()
                    self.assertEqual(lock.remaining, 0)
                self.fail("was not cancelled")
        self.assert_not_cancelled()
        self.assertEqual(len(fake.of("DELETE")), 1)
        return until - at

    async def test_gone_cancels_at_once(self):
        for gone in GONE, problem(409, "not_owner"):
            fake = self.fake(renew_after_ms=20).on("PUT", gone)
            self.assertGreater(await self.lose(fake), 5)

    async def test_cancels_when_the_validity_ends(self):
        for rest in NO_QUORUM, silent, trickle, cut:
            fake = self.fake(renew_after_ms=20, validity_ms=1000)
            fake.on("PUT", rest=rest)
            self.assertLessEqual(await self.lose(fake), 0)

    async def test_max_hold(self):
        fake = self.fake(renew_after_ms=20, validity_ms=1000)
        fake.on("PUT", problem(409, "max_hold_reached"))
        self.assertLessEqual(await self.lose(fake), 0)
        self.assertLessEqual(len(fake.of("PUT")), 1)

    async def test_the_block_may_swallow_the_cancellation(self):
        fake = self.fake(renew_after_ms=20).on("PUT", GONE)
        with self.assertRaises(LockLost):
            async with AsyncLock("a", urls=fake.url):
                with self.assertRaises(asyncio.CancelledError):
                    await asyncio.sleep(20)
        self.assert_not_cancelled()

    async def test_what_the_block_raises_goes_first(self):
        fake = self.fake(renew_after_ms=20).on("PUT", GONE)
        with self.assertRaises(ZeroDivisionError):
            async with AsyncLock("a", urls=fake.url):
                try:
                    await asyncio.sleep(20)
                finally:
                    raise ZeroDivisionError
        self.assert_not_cancelled()

    async def test_check_raises_it_too(self):
        fake = self.fake(validity_ms=200)
        with self.assertRaises(LockLost):
            async with AsyncLock("a", urls=fake.url) as lock:
                time.sleep(0.3)  # holds up the loop: nobody can cancel
                lock.check()
        self.assert_not_cancelled()
        await asyncio.sleep(0.01)

    async def test_a_block_that_held_up_the_loop_is_told_at_its_end(self):
        fake = self.fake(validity_ms=200)
        with self.assertRaises(LockLost):
            async with AsyncLock("a", urls=fake.url):
                time.sleep(0.3)
        self.assert_not_cancelled()

    async def test_nobody_is_cancelled_after_the_block(self):
        fake = self.fake(renew_after_ms=1).on("PUT", rest=after_release(GONE))
        async with AsyncLock("a", urls=fake.url):
            await eventually(lambda: fake.of("PUT"), "an extend")
        await asyncio.sleep(0.3)
        self.assert_not_cancelled()

    async def test_nested_locks_both_lost(self):
        fake = self.fake(validity_ms=300)
        with self.assertRaises(LockLost):
            async with AsyncLock("a", urls=fake.url):
                async with AsyncLock("b", urls=fake.url):
                    await asyncio.sleep(20)
        self.assert_not_cancelled()
        await asyncio.sleep(0.01)

    async def test_only_the_outer_one_lost(self):
        outer, inner = self.fake(validity_ms=1000), self.fake()
        with self.assertRaises(LockLost) as caught:
            async with AsyncLock("out", urls=outer.url):
                async with AsyncLock("in", urls=inner.url):
                    await asyncio.sleep(20)
        self.assertIn("out", str(caught.exception))
        self.assertEqual(len(inner.of("DELETE")), 1)
        self.assert_not_cancelled()

    async def test_a_task_group_within_the_block_ends(self):
        fake = self.fake(renew_after_ms=20).on("PUT", GONE)
        ended = []

        async def child():
            try:
                await asyncio.sleep(20)
            finally:
                ended.append(True)

        with self.assertRaises(LockLost):
            async with AsyncLock("a", urls=fake.url):
                async with asyncio.TaskGroup() as group:
                    group.create_task(child())
                    group.create_task(child())
        self.assertEqual(ended, [True, True])
        self.assert_not_cancelled()

    async def test_a_lock_within_a_task_group(self):
        fake = self.fake(renew_after_ms=20).on("PUT", GONE)

        async def child():
            async with AsyncLock("a", urls=fake.url):
                await asyncio.sleep(20)

        with self.assertRaises(BaseException) as caught:
            async with asyncio.TaskGroup() as group:
                group.create_task(child())
        self.assertIsInstance(caught.exception.exceptions[0], LockLost)


class Cancel(Case):
    """By somebody else."""

    async def hold(self, lock, entered):
        async with lock:
            entered.set()
            await asyncio.sleep(20)

    async def test_in_the_block(self):
        fake = self.fake()
        entered = asyncio.Event()
        task = asyncio.create_task(
            self.hold(AsyncLock("a", urls=fake.url), entered))
        await entered.wait()
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        self.assertEqual(len(fake.of("DELETE")), 1)

    async def test_at_the_same_moment_as_the_loss(self):
        """Whichever comes first: the other's cancellation is not swallowed."""
        for order in "loss first", "cancel first":
            fake = self.fake()
            entered = asyncio.Event()
            lock = AsyncLock("a", urls=fake.url)
            task = asyncio.create_task(self.hold(lock, entered))
            await entered.wait()
            keeper = lock._keeper
            if order == "loss first":
                keeper._lose(LockLost("a"))
            task.cancel()
            if order == "cancel first":
                keeper._lose(LockLost("a"))
            with self.assertRaises(asyncio.CancelledError):
                await task
            self.assertEqual(len(fake.of("DELETE")), 1)

    async def test_what_may_have_been_granted_is_released(self):
        fake = self.fake().on("POST", silent)
        task = asyncio.create_task(AsyncLock("a", urls=fake.url).acquire())
        await eventually(lambda: fake.requests, "the request")
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        await eventually(lambda: fake.left, "the connection is closed")
        await eventually(lambda: fake.of("DELETE"), "the release")
        first, again = fake.of("POST")
        self.assertEqual(first.headers["idempotency-key"],
                         again.headers["idempotency-key"])

    async def test_what_a_connection_that_ended_may_have_brought_is_released(self):
        """It ended with its server. The next replica finds the lock held, and may do
        so because of the first request."""
        held = {"status": 409, "code": "lock_held", "retry_after_ms": 60_000}

        def ends(_, number):
            if number == 1:
                return answer(409, held | {"retry_after_ms": 1})
            first.leave()
            return None

        def goes_on(method, number):
            if method == "DELETE":
                return answer(200, {"released": True})
            return answer(409, held) if number == 1 else answer(201, grant())
        with OddServer(ends) as first, OddServer(goes_on) as second:
            async with AsyncClient([first.url, second.url]) as client:
                with self.assertRaises(TimeoutError):
                    async with asyncio.timeout(1):
                        await AsyncLock("a", client=client).acquire()
            self.assertEqual(first.seen, ["POST", "POST"])
            self.assertEqual(second.seen, ["POST", "POST", "DELETE"])

    async def test_while_it_releases_it_is_done_once_more(self):
        """And what the second one is told is no loss."""
        fake = self.fake().on("DELETE", silent, GONE)
        lock = AsyncLock("a", urls=fake.url)

        async def work():
            async with lock:
                pass

        task = asyncio.create_task(work())
        await eventually(lambda: fake.of("DELETE"), "the release")
        task.cancel()
        with self.assertRaises(asyncio.CancelledError):
            await task
        with self.assertRaises(RuntimeError):
            await lock.acquire()
        await eventually(lambda: not lock._is_entered, "it ends")
        self.assertEqual(len(fake.of("DELETE")), 2)
        self.assertEqual(len({one.headers["x-lock-token"]
                              for one in fake.of("DELETE")}), 1)

    async def test_a_timeout_around_the_block_stays_a_timeout(self):
        fake = self.fake()
        with self.assertRaises(TimeoutError):
            async with asyncio.timeout(None) as limit:
                async with AsyncLock("a", urls=fake.url):
                    limit.reschedule(asyncio.get_running_loop().time() + 0.1)
                    await asyncio.sleep(20)
        self.assertEqual(len(fake.of("DELETE")), 1)
        self.assert_not_cancelled()

    async def test_a_timeout_within_the_block_leaves_the_lock(self):
        fake = self.fake()
        async with AsyncLock("a", urls=fake.url) as lock:
            with self.assertRaises(TimeoutError):
                async with asyncio.timeout(0.1):
                    await asyncio.sleep(20)
            lock.check()
        self.assertEqual(len(fake.of("DELETE")), 1)
