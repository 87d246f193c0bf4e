# SPDX-License-Identifier: MIT
"""What users of the package stumbled over."""
from __future__ import annotations

import asyncio
import copy
import gc
import json
import logging
import pickle
import subprocess
import sys
import unittest
from concurrent.futures import ProcessPoolExecutor

import redlockd
from fake import WithFake, cut, eventually, grant, page, problem
from redlockd import (AsyncClient, AsyncLock, Client, Lock, LockHeld, LockLost,
                      RequestRefused, Unavailable)
from waiting import wait_until

HELD = problem(409, "lock_held", held_by={
    "owner": "web-3", "remaining_ms": 1500, "fencing_token": 7})
GONE = problem(404, "lock_not_found")


def fail_with_a_held_lock(url):
    with Lock("a", wait=0, urls=url):
        pass


def holding(held=True, **fields):
    return page(200, json.dumps({"id": "a", "resource": "a", "waiters": 0,
                                 "held": held, "version": "7", **fields}))


class Case(WithFake, unittest.IsolatedAsyncioTestCase):
    pass


class After(Case):
    async def test_a_released_lock_is_not_ours(self):
        fake = self.fake()
        with Lock("a", urls=fake.url) as lock:
            lock.check()
        async with AsyncLock("a", urls=fake.url) as other:
            other.check()
        for one in lock, other:
            with self.assertRaisesRegex(LockLost, "released"):
                one.check()
            self.assertEqual(one.remaining, 0)
            self.assertGreater(one.fencing_token, 0)


class Errors(Case):
    ALL = (LockHeld("held", {"owner": "me", "remaining_ms": 1500}),
           LockLost("lost"), Unavailable("none"),
           redlockd.RateLimited("slow", 1.5), redlockd.Untrusted("who"),
           RequestRefused("wrong", 400, "invalid_request"),
           redlockd.Unauthorized("who", 401, "unauthorized"),
           redlockd.Forbidden("no", 403, "forbidden"))

    def test_they_can_be_pickled_and_copied(self):
        for error in self.ALL:
            for other in (pickle.loads(pickle.dumps(error)), copy.copy(error),
                          copy.deepcopy(error)):
                self.assertEqual((type(other), str(other), vars(other)),
                                 (type(error), str(error), vars(error)))

    def test_a_pool_of_processes_survives_a_held_lock(self):
        fake = self.fake().on("POST", rest=HELD)
        with ProcessPoolExecutor(1) as pool:
            for _ in range(2):
                job = pool.submit(fail_with_a_held_lock, fake.url)
                with self.assertRaises(LockHeld) as caught:
                    job.result(20)
        self.assertEqual((caught.exception.owner, caught.exception.remaining),
                         ("web-3", 1.5))


class WithoutABlock(Case):
    """In redis-py's terms."""

    async def test_acquire_and_release(self):
        fake = self.fake(renew_after_ms=20)
        lock, other = (kind("a", urls=fake.url) for kind in (Lock, AsyncLock))
        self.assertFalse(lock.owned() or await other.owned())
        self.assertIs(lock.acquire(), True)
        self.assertIs(await other.acquire(), True)
        self.assertTrue(lock.owned() and await other.owned())
        with self.assertRaises(RuntimeError):
            lock.acquire()
        await eventually(lambda: len(fake.of("PUT")) > 5, "renewals")
        lock.release()
        await other.release()
        self.assertFalse(lock.owned() or await other.owned())
        self.assertEqual(len(fake.of("DELETE")), 2)
        with self.assertRaises(RuntimeError):
            lock.release()
        with self.assertRaises(RuntimeError):
            await other.release()
        with lock:  # it may be used again
            lock.check()

    async def test_somebody_else_holds_it(self):
        fake = self.fake().on("POST", rest=HELD)
        lock, other = (kind("a", wait=0, urls=fake.url)
                       for kind in (Lock, AsyncLock))
        self.assertIs(lock.acquire(), False)
        self.assertIs(await other.acquire(), False)
        patient = Lock("a", urls=fake.url)
        self.assertIs(patient.acquire(blocking=False), False)
        self.assertIs(patient.acquire(blocking_timeout=0.01), False)
        waits = [post.body.get("wait_ms", 0) for post in fake.of("POST")]
        self.assertEqual(waits[:3], [0, 0, 0])
        self.assertTrue(0 < waits[3] <= 10, waits)

    def test_what_is_no_answer_is_no_false(self):
        with self.assertRaises(Unavailable):
            Lock("a", urls="http://127.0.0.1:1").acquire(blocking=False)

    async def test_a_loss_cancels_nobody(self):
        fake = self.fake(renew_after_ms=20).on("PUT", rest=GONE)
        losses = []
        lock, other = (kind("a", urls=fake.url, on_loss=losses.append)
                       for kind in (Lock, AsyncLock))
        lock.acquire()
        await other.acquire()
        await eventually(lambda: len(losses) == 2, "both are lost")
        self.assertFalse(lock.owned() or await other.owned())
        for check in lock.check, other.check, lock.release:
            with self.assertRaises(LockLost):
                check()
        with self.assertRaises(LockLost):
            await other.release()

    async def test_locked(self):
        for action, is_locked in ((holding(fencing_token=7), True),
                                  (holding(held=False), False)):
            fake = self.fake().on("GET", rest=action)
            self.assertIs(Lock("a", urls=fake.url).locked(), is_locked)
            self.assertIs(await AsyncLock("a", urls=fake.url).locked(),
                          is_locked)
            self.assertEqual(fake.requests[0].path, "/locks/a")
        fake = self.fake().on("GET", holding(held=False), holding())
        self.assertTrue(Lock(["a", "b/"], urls=fake.url).locked())
        self.assertEqual(fake.requests[1].path, "/locks/~Yi8")
        for free, is_locked in ([0, 2], False), ([0], True):
            fake = self.fake().on("GET", page(200, json.dumps({"free": free})))
            lock = Lock("a", limit=3, permits=2, urls=fake.url)
            self.assertIs(lock.locked(), is_locked)
            self.assertEqual(fake.requests[0].path, "/pools/a?limit=3")

    async def test_extend(self):
        fake = self.fake()
        lock, other = (kind("a", urls=fake.url) for kind in (Lock, AsyncLock))
        with self.assertRaises(RuntimeError):
            lock.extend(5)
        with lock:
            self.assertIs(lock.extend(5, replace_ttl=True), True)
            self.assertIs(lock.extend(5), True)
        async with other:
            self.assertIs(await other.extend(60, replace_ttl=True), True)
        ttls = [put.body["ttl_ms"] for put in fake.of("PUT")]
        self.assertEqual((ttls[0], ttls[2]), (5000, 60000))
        self.assertTrue(33_000 < ttls[1] <= 34_000, ttls)

    async def test_a_forgotten_lock_is_not_kept_for_ever(self):
        fake = self.fake(renew_after_ms=300)
        logging.getLogger("redlockd").setLevel(logging.WARNING)
        for kind in Lock, AsyncLock:
            before = len(fake.of("PUT"))
            lock = kind("a", urls=fake.url)
            acquired = lock.acquire()
            if kind is AsyncLock:
                await acquired
            with self.assertLogs("redlockd", "WARNING") as logs:
                del lock
                gc.collect()
            self.assertIn("never released", logs.output[0])
            await asyncio.sleep(0.6)
            self.assertEqual(len(fake.of("PUT")), before)


class Told(Case):
    def test_no_password_is_told_by_any_talk(self):
        fake = self.fake(renew_after_ms=10)
        refuses = problem(503, "no_quorum", retry_after_ms=10)
        url = fake.url.replace("//", "//me:secret@")
        fake.on("POST", refuses).on("PUT", refuses, cut, rest=grant(
            renew_after_ms=60000)).on("DELETE", rest=refuses)
        with self.assertLogs(level=logging.DEBUG) as logs:
            logging.getLogger("redlockd").setLevel(logging.DEBUG)
            with Lock("a", urls=url) as lock:
                wait_until(lambda: len(fake.of("PUT")) > 2, "it is extended")
                texts = [repr(lock), repr(lock._client)]
        with self.assertRaises(ValueError) as caught:
            Client("http://me:secret@:x")
        for text in [*logs.output, *texts, str(caught.exception)]:
            self.assertNotIn("secret", text)
        self.assertIn("not extended yet", "".join(logs.output))

    def test_who_holds_it_is_told(self):
        for how, held_by, text in (({}, {"owner": "web-3"}, "by web-3"),
                                   ({}, {"readers": 1}, "by a reader"),
                                   ({}, {"readers": 2}, "by 2 readers"),
                                   ({"limit": 3}, {}, "too few of 3 permits")):
            fake = self.fake().on("POST", problem(409, "lock_held", held_by=held_by))
            with self.assertRaisesRegex(LockHeld, text):
                Lock("a", wait=0, urls=fake.url, **how).__enter__()

    def test_good_requests_are_not_logged(self):
        fake = self.fake()
        with self.assertNoLogs(level=logging.INFO):
            logging.getLogger("redlockd").setLevel(logging.INFO)
            with Lock("a", urls=fake.url):
                pass


class Shown(Case):
    async def test_id_and_get(self):
        fake = self.fake().on("GET", holding(owner="me", fencing_token=7),
                              holding(held=False), holding(),
                              problem(400, "invalid_request"))
        with Client(fake.url) as client, Lock("a", client=client) as lock:
            self.assertEqual(lock.id, "an~id")
            self.assertEqual(client.get("a/b").owner, "me")
            self.assertEqual(fake.of("GET")[0].path, "/locks/~YS9i")
            self.assertIsNone(client.get("a"))
        async with AsyncClient(fake.url) as other:
            self.assertEqual((await other.get("a")).id, "a")
            with self.assertRaises(RequestRefused):
                await other.get("a")

    async def test_a_list_is_several_resources(self):
        fake = self.fake()
        with Lock(["a", "b"], urls=fake.url), Lock(("a",), urls=fake.url):
            pass
        async with AsyncLock("a", ["b", "c"], urls=fake.url):
            pass
        bodies = [post.body for post in fake.of("POST")]
        self.assertEqual(bodies[0]["resources"], ["a", "b"])
        self.assertEqual(bodies[1]["resource"], "a")
        self.assertEqual(bodies[2]["resources"], ["a", "b", "c"])
        with self.assertRaises(ValueError):
            Lock([])

    async def test_repr(self):
        fake = self.fake()
        lock = Lock("a", "b", urls=fake.url)
        self.assertEqual(repr(lock), "<Lock 'a', 'b': not acquired>")
        with lock:
            self.assertRegex(repr(lock), r"^<Lock 'a', 'b': fencing_token=\d+, "
                             r"2\d\.\d s left>$")
            self.assertNotIn(lock.token, repr(lock) + repr(vars(lock)) +
                             repr(lock._held.grant))
            lock._hold.loss = LockLost("x")
            self.assertRegex(repr(lock), "lost>")
            lock._hold.loss = None
        self.assertRegex(repr(lock), "released>")
        self.assertIn("<AsyncLock 'a'", repr(AsyncLock("a")))


class First(Case):
    CODE = """
import sys
from redlockd import Lock
with Lock("a", urls=sys.argv[1]):
    pass
print(*sys.modules)
"""

    def test_the_first_lock_of_a_process_loads_little(self):
        """The time itself is measured by make bench-clients."""
        fake = self.fake()
        done = subprocess.run([sys.executable, "-c", self.CODE, fake.url],
                              check=True, text=True, stdout=subprocess.PIPE)
        loaded = set(done.stdout.split())
        for module in ("asyncio", "ssl", "http.client", "email", "dataclasses",
                       "inspect", "uuid", "urllib.request",
                       "encodings.idna"):
            self.assertNotIn(module, loaded)
