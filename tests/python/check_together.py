# SPDX-License-Identifier: MIT
"""Locks of one client at once: their calls go together, in batches. Threads and
asyncio, over a server that does what the test's script says."""
from __future__ import annotations

import asyncio
import gc
import logging
import os
import threading
import time
import unittest
from concurrent.futures import CancelledError
from unittest import mock

from fake import (WithFake, batch, cut, eventually, grant, late, page, problem,
                  silent, usual)
from jobs import Job, together
from redlockd import AsyncClient, AsyncLock, Client, Lock, LockLost
from users import LIMIT_S, Loop, Threads, each_kind
from waiting import wait_until

HELD = problem(409, "lock_held", retry_after_ms=20)


def gated(gate, action=usual):
    """Answers once the gate is open."""
    def act(handler, request):
        gate.wait(LIMIT_S)
        action(handler, request)
    return act


class Case(WithFake, unittest.TestCase):
    def held_up(self, kind, fake=None, **how):
        """A user whose two requests under way wait for the gate."""
        fake = fake or self.fake()
        gate = threading.Event()
        self.addCleanup(gate.set)
        fake.scripts.setdefault("POST", [])[:0] = [gated(gate)] * 2
        user = kind(fake.url, **how)
        # a request that is overdue gives its slot back: these shall not
        for module in "_base", "_batch":
            self.enterContext(
                mock.patch(f"redlockd.{module}.OVERDUE_S", LIMIT_S))
        busy = []
        for number in range(2):
            busy.append(user.acquire(f"busy:{number}", wait=0))
            wait_until(lambda number=number: len(fake.requests) > number,
                       "it is under way")
        # beside the first one, the second one is tried once
        self.assertEqual([len(one.body["operations"])
                          for one in fake.batches], [1])
        fake.batches.clear()
        return fake, user, gate, busy

    def collect(self, user, *futures):
        wait_until(lambda: user.queued == len(futures), "all are collected")
        return futures

    def results(self, *futures):
        return [future.result(LIMIT_S) for future in futures]


class Together(Case):
    @each_kind
    def test_what_comes_while_two_are_under_way_is_one_batch(self, kind):
        fake, user, gate, busy = self.held_up(kind)
        more = self.collect(user, *[
            user.acquire(f"more:{number}", wait=0) for number in range(20)])
        gate.set()
        locks = self.results(*busy, *more)
        self.assertEqual([len(one.body["operations"])
                          for one in fake.batches], [20])
        self.assertEqual(len({lock.fencing_token for lock in locks}), 22)
        keys = {one.headers["idempotency-key"] for one in fake.of("POST")}
        self.assertEqual(len(keys), 22)
        self.results(*map(user.release, locks))
        self.assertEqual(len(fake.of("DELETE")), 22)
        user.end()

    @each_kind
    def test_extends_that_have_no_time_to_wait_go_at_once_and_together(self, kind):
        fields = {"ttl_ms": 1500, "validity_ms": 1500, "renew_after_ms": 700}
        fake = self.fake(**fields)
        # nothing that is under way gives its slot back
        for module in "_base", "_batch":
            self.enterContext(
                mock.patch(f"redlockd.{module}.OVERDUE_S", LIMIT_S))
        user = kind(fake.url)
        locks = self.results(*[user.acquire(f"{number}", wait=0)
                               for number in range(20)])
        gate = threading.Event()
        self.addCleanup(gate.set)
        fake.on("POST", rest=gated(gate))
        busy = [user.acquire(f"busy:{number}", wait=0) for number in range(2)]
        wait_until(lambda: len(fake.of("PUT")) >= 40, "they are renewed twice")
        for lock in locks:
            lock.check()
        batches = [one for one in fake.batches
                   if one.body["operations"][0]["operation"] == "extend"]
        self.assertGreater(sum(len(one.body["operations"]) for one in batches),
                           30)
        self.assertLess(len(batches), 20)
        gate.set()
        self.results(*busy)
        user.end()

    @each_kind
    def test_validity_counts_from_before_the_batch(self, kind):
        fake, user, gate, busy = self.held_up(kind)
        one, two = self.collect(user, *[user.acquire(name, wait=0)
                                        for name in "ab"])
        time.sleep(1)
        fake.on("POST", late(1, grant(validity_ms=5000)),
                grant(validity_ms=5000))
        gate.set()
        for lock in self.results(one, two):
            until = lock._held.grant.until
            self.assertLessEqual(lock.remaining, 4)
            self.assertEqual(until, one.result()._held.grant.until)
        self.results(*busy)
        user.end()

    def test_many_threads_at_random(self):
        """Two locks at once have two tokens, whatever went with what."""
        fake = self.fake().on("BATCH", late(0.01, problem(503, "no_quorum")),
                              cut, problem(404, "not_found"))
        seen = set()

        def work(number):
            for turn in range(10):
                with Lock(f"{number}:{turn}", client=client) as lock:
                    self.assertNotIn(lock.token, seen)
                    seen.add(lock.token)

        with Client(fake.url) as client:
            together([lambda number=number: work(number)
                      for number in range(24)])
        self.assertGreater(len(fake.batches), 3)
        self.assertEqual(len(seen), 240)
        tokens = {one.headers["x-lock-token"] for one in fake.of("DELETE")}
        self.assertLessEqual(seen, tokens)


class Trouble(Case):
    @each_kind
    def test_without_an_answer_each_is_repeated_with_its_key(self, kind):
        for broken in cut, page(200, "{}"):
            fake, user, gate, busy = self.held_up(kind)
            fake.on("BATCH", broken)
            fake.scripts["POST"] = []
            more = self.collect(user, *[user.acquire(name, wait=5)
                                        for name in "abc"])
            gate.set()
            self.results(*busy, *more)
            sent = {one["resource"]: one["idempotency_key"]
                    for one in fake.batches[0].body["operations"]}
            got = {one.body["resource"]: one.headers["idempotency-key"]
                   for one in fake.of("POST")[2:]}
            self.assertEqual(got, sent)
            user.end()

    @each_kind
    def test_a_release_without_an_answer_is_not_told_as_lost(self, kind):
        gone = problem(404, "lock_not_found")
        fake = self.fake()
        user = kind(fake.url)
        locks = self.results(*[user.acquire(name, wait=5) for name in "ab"])
        user.end()
        fake, user, gate, busy = self.held_up(kind)
        for lock in locks:
            lock._client = user.client
        fake.on("BATCH", cut).on("DELETE", gone, gone)
        ends = self.collect(user, *map(user.release, locks))
        gate.set()
        self.results(*busy, *ends)
        user.end()

    @each_kind
    def test_a_batch_that_is_refused_goes_in_single_calls(self, kind):
        fake, user, gate, busy = self.held_up(kind)
        fake.on("BATCH", rest=problem(404, "not_found"))
        more = self.collect(user, *[user.acquire(name, wait=0)
                                    for name in "abc"])
        gate.set()
        self.results(*busy, *more)
        self.assertEqual(len(fake.of("POST")), 5)
        self.assertEqual(len(fake.batches), 1)
        user.end()

    @each_kind
    def test_a_new_access_token_is_read(self, kind):
        fake, user, gate, busy = self.held_up(kind, auth_token="one")
        identity = user.client._identity
        identity.refresh = lambda _: setattr(identity, "_token", "two") or \
            True
        fake.on("BATCH", problem(401, "unauthorized"))
        more = self.collect(user, *[user.acquire(name, wait=0)
                                    for name in "abc"])
        gate.set()
        self.results(*busy, *more)
        self.assertEqual([one.headers["authorization"]
                          for one in fake.batches],
                         ["Bearer one", "Bearer two"])
        user.end()

    @each_kind
    def test_a_request_that_is_overdue_holds_nobody_up(self, kind):
        hung, good = self.fake(), self.fake()
        hung.on("POST", rest=silent)
        patch = mock.patch("redlockd._batch.OVERDUE_S", LIMIT_S)
        self.enterContext(patch)  # it is the driver that notices
        user = kind([hung.url, good.url], timeout=3)
        busy = []
        for number in range(2):
            busy.append(user.acquire(f"busy:{number}", wait=0))
            wait_until(lambda: len(hung.requests) == len(busy), "it hangs")
        began = time.monotonic()
        more = [user.acquire(f"{number}", wait=0) for number in range(8)]
        self.results(*more)
        self.assertLess(time.monotonic() - began, 2.5)
        self.assertEqual(len(hung.requests), 2)
        self.results(*busy)
        user.end()

    @each_kind
    def test_a_batch_that_hangs_is_repeated_elsewhere(self, kind):
        one, two = self.fake(), self.fake()
        one, user, gate, busy = self.held_up(
            lambda url, **how: kind([url, two.url], **how), one, timeout=1)
        one.on("BATCH", rest=silent)
        more = self.collect(user, *[user.acquire(name, wait=5)
                                    for name in "abc"])
        gate.set()
        self.results(*busy, *more)
        self.assertEqual(len(two.of("POST")), 3)
        user.end()


class Waits(Case):
    @each_kind
    def test_one_that_waits_is_tried_first_and_takes_no_slot_then(self, kind):
        fake, user, gate, busy = self.held_up(kind)
        freed = threading.Event()
        fake.scripts["POST"] += [HELD, HELD]
        fake.rest["POST"] = lambda handler, request: (
            gated(freed) if request.body.get("wait_ms") else usual)(
                handler, request)
        waits = self.collect(user, *[user.acquire(name, wait=9)
                                     for name in "ab"])
        gate.set()
        self.results(*busy)
        wait_until(lambda: len(fake.of("POST")) == 6, "they wait")
        self.assertEqual(len(fake.batches), 1)
        tries, at_last = fake.of("POST")[2:4], fake.of("POST")[4:]
        self.assertNotIn("wait_ms", tries[0].body)
        for one in at_last:
            self.assertTrue(7000 < one.body["wait_ms"] <= 9000, one.body)
        keys = {one.headers["idempotency-key"] for one in tries + at_last}
        self.assertEqual(len(keys), 4)
        # both slots are free
        for number in range(4):
            self.results(user.acquire(f"c{number}", wait=0))
        freed.set()
        self.results(*waits)
        user.end()

    @each_kind
    def test_renewals_go_together(self, kind):
        fake = self.fake(renew_after_ms=1000)
        user = kind(fake.url)
        locks = self.results(*[user.acquire(f"{number}", wait=5)
                               for number in range(40)])
        fake.batches.clear()
        fake.fields["renew_after_ms"] = 60000
        wait_until(lambda: len(fake.of("PUT")) >= 40, "all are renewed")
        single = 40 - sum(len(one.body["operations"])
                          for one in fake.batches)
        self.assertLess(single + len(fake.batches), 25)
        self.results(*map(user.release, locks))
        user.end()


class Leaves(Case):
    """Those that are cancelled or interrupted."""

    def test_while_it_is_collected_it_is_taken_out(self):
        fake, user, gate, busy = self.held_up(Loop)
        one, two, three = self.collect(user, *[user.acquire(name, wait=0)
                                               for name in "abc"])
        one.cancel()
        wait_until(lambda: user.queued == 2, "it is taken out")
        gate.set()
        self.results(*busy, two, three)
        self.assertEqual(len(fake.of("POST")), 4)
        self.assertEqual(fake.of("DELETE"), [])
        user.end()

    def in_a_batch(self, *batches):
        """Futures whose batch is under way."""
        fake, user, gate, busy = self.held_up(Loop)
        fake.on("BATCH", *batches)
        futures = self.collect(user, *[user.acquire(name, wait=0)
                                       for name in "abc"])
        gate.set()
        self.results(*busy)
        wait_until(lambda: fake.batches, "the batch is under way")
        return fake, user, futures

    def test_in_a_batch_what_it_was_granted_is_released(self):
        gate = threading.Event()
        fake, user, (one, two, three) = self.in_a_batch(gated(gate, batch))
        one.cancel()
        with self.assertRaises(CancelledError):
            one.result(LIMIT_S)
        gate.set()
        held = self.results(two, three)
        wait_until(lambda: fake.of("DELETE"), "it is released")
        token = fake.of("DELETE")[0].headers["x-lock-token"]
        self.assertNotIn(token, [lock.token for lock in held])
        self.results(*map(user.release, held))
        self.assertEqual(len(fake.of("DELETE")), 3)
        user.end()

    def test_in_a_batch_without_an_answer_its_key_is_asked_again(self):
        gate = threading.Event()
        fake, user, (one, two, three) = self.in_a_batch(gated(gate, cut))
        one.cancel()
        with self.assertRaises(CancelledError):
            one.result(LIMIT_S)
        gate.set()
        held = self.results(two, three)
        wait_until(lambda: fake.of("DELETE"), "it is released")
        keys = {it["resource"]: it["idempotency_key"]
                for it in fake.batches[0].body["operations"]}
        again, = [it for it in fake.of("POST") if it.body["resource"] == "a"]
        self.assertEqual(again.headers["idempotency-key"], keys["a"])
        token = fake.of("DELETE")[0].headers["x-lock-token"]
        self.assertNotIn(token, [lock.token for lock in held])
        user.end()

    def test_one_alone_closes_its_connection(self):
        """As the slot came to it later, no task of its own sends it."""
        fake, user, gate, busy = self.held_up(Loop, timeout=3 * LIMIT_S)
        fake.on("POST", silent)
        one, = self.collect(user, user.acquire("one", wait=0))
        gate.set()
        self.results(*busy)
        wait_until(lambda: len(fake.of("POST")) == 3, "it is under way")
        one.cancel()
        wait_until(lambda: fake.left, "the connection is closed")
        user.end()

    def test_a_release_that_is_cancelled_in_the_queue_is_done(self):
        fake = self.fake()
        user = Loop(fake.url)
        lock, = self.results(user.acquire("a", wait=5))
        other = self.held_up(Loop)
        fake, other_user, gate, busy = other
        lock._client = other_user.client
        end = other_user.start(lock.release())
        self.collect(other_user, end)
        end.cancel()
        with self.assertRaises(CancelledError):
            end.result(LIMIT_S)
        gate.set()
        self.results(*busy)
        wait_until(lambda: not lock._is_entered, "it ends")
        self.assertEqual(len(fake.of("DELETE")), 1)
        other_user.end()
        user.end()

    def test_a_thread_that_is_interrupted_while_it_is_collected(self):
        fake, user, gate, busy = self.held_up(Threads)
        self.interrupt_when(lambda: user.queued == 1)
        with self.assertRaises(KeyboardInterrupt):
            user.lock("a", wait=0).acquire()
        self.assertEqual(user.queued, 0)
        gate.set()
        self.results(*busy, user.acquire("b", wait=0))
        self.assertEqual(len(fake.of("POST")), 3)
        user.end()

    def test_a_thread_that_is_interrupted_while_others_go_with_it(self):
        """It sends the batch: the others ask again, with their keys. What the
        server may have granted it is released."""
        fake, user, gate, busy = self.held_up(Threads)
        fake.on("BATCH", silent)
        more = []

        def collect():
            wait_until(lambda: user.queued == 1, "the first waits")
            more.extend(user.acquire(name, wait=5) for name in "bc")
            wait_until(lambda: user.queued == 3, "all are collected")
            gate.set()
        Job(collect).start()
        self.interrupt_when(lambda: fake.batches)
        with self.assertRaises(KeyboardInterrupt):
            user.lock("a", wait=5).acquire()
        self.assertEqual(len(fake.of("DELETE")), 1)
        self.results(*busy, *more)
        keys = {it["resource"]: it["idempotency_key"]
                for it in fake.batches[0].body["operations"]}
        self.assertEqual(len(keys), 3)
        for one in fake.of("POST")[2:]:
            self.assertEqual(one.headers["idempotency-key"],
                             keys[one.body["resource"]])
        user.end()

    def test_a_thread_that_is_interrupted_while_another_sends_it(self):
        inner = threading.Event()
        fake, user, gate, busy = self.held_up(Threads)
        fake.on("BATCH", gated(inner, batch))
        more = [user.acquire("b", wait=5)]
        wait_until(lambda: user.queued == 1, "the first waits")
        Job(lambda: wait_until(lambda: user.queued == 2, "both") or
            gate.set()).start()
        self.interrupt_when(lambda: fake.batches)
        Job(lambda: wait_until(lambda: fake.batches, "it is sent") or
            time.sleep(0.3) or inner.set()).start()
        with self.assertRaises(KeyboardInterrupt):
            user.lock("a", wait=5).acquire()
        one, = fake.of("DELETE")  # the program may end now
        held, = self.results(*more)
        self.results(*busy)
        self.assertNotEqual(one.headers["x-lock-token"], held.token)
        self.assertEqual(len(fake.of("POST")), 4)
        user.end()

    def test_a_release_that_is_interrupted_in_the_queue_is_sent(self):
        lock = Lock("a", urls=self.fake().url)
        lock.acquire()
        fake, user, gate, busy = self.held_up(Threads)
        lock._client = user.client
        self.interrupt_when(lambda: user.queued == 1)
        Job(lambda: wait_until(lambda: user.queued == 1, "it is collected") or
            time.sleep(0.3) or gate.set()).start()
        with self.assertRaises(KeyboardInterrupt):
            lock.release()
        self.assertEqual(len(fake.of("DELETE")), 1)
        self.assertFalse(lock._is_entered)
        self.results(*busy)
        user.end()

    def test_a_release_that_is_interrupted_under_way_is_sent_again(self):
        fake = self.fake().on("DELETE", silent, problem(404, "lock_not_found"))
        with Client(fake.url) as client:
            lock = Lock("a", client=client)
            lock.acquire()
            self.interrupt_when(lambda: fake.of("DELETE"))
            with self.assertRaises(KeyboardInterrupt):
                lock.release()
        self.assertEqual(len(fake.of("DELETE")), 2)


class Ends(Case):
    """Programs for asyncio that end while locks are acquired together."""

    async def hold(self, client, name):
        async with AsyncLock(name, client=client, wait=0):
            await asyncio.sleep(LIMIT_S)

    async def fail(self, fake, is_warm, turns):
        client = AsyncClient(fake.url)
        if is_warm:  # a connection is idle
            async with AsyncLock("warm", client=client):
                pass
        async with asyncio.TaskGroup() as group:
            for name in "abcd":
                group.create_task(self.hold(client, name))
            if turns is None:
                await eventually(lambda: fake.batches, "a batch")
            for _ in range(turns or 0):
                await asyncio.sleep(0)
            raise ValueError

    def assert_no_lock_is_left(self, fake):
        keys = {one.headers["idempotency-key"] for one in fake.of("POST")}
        self.assertEqual(len(fake.of("DELETE")), len(keys))

    def test_a_task_of_their_group_fails(self):
        for is_warm in False, True:
            for turns in *range(1, 9), None:
                with self.subTest(is_warm=is_warm, turns=turns):
                    fake = self.fake()
                    if turns is None:
                        fake.on("BATCH", late(0.2, batch))
                    with self.assertRaises(ExceptionGroup):
                        asyncio.run(self.fail(fake, is_warm, turns))
                    self.assert_no_lock_is_left(fake)
                    if turns is None:
                        self.assertEqual(len(fake.of("DELETE")), 4 + is_warm)

    def test_a_server_that_gives_no_answer_is_left(self):
        fake = self.fake().on("BATCH", silent)
        began = time.monotonic()
        with self.assertRaises(ExceptionGroup):
            asyncio.run(self.fail(fake, True, None))
        self.assertLess(time.monotonic() - began, 1.5)
        self.assertEqual(len(fake.of("DELETE")), 1 + 4)

    def test_one_of_them_waits_for_the_answer_to_all(self):
        fake = self.fake().on("BATCH", late(0.3, batch))

        async def main():
            client = AsyncClient(fake.url)
            one, *more = [asyncio.create_task(self.hold(client, name))
                          for name in "abc"]
            await eventually(lambda: fake.batches, "a batch")
            one.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await one
            self.assertEqual(len(fake.of("DELETE")), 1)
            for task in more:
                self.assertFalse(task.done())
        asyncio.run(main())
        self.assertEqual(len(fake.of("POST")), 3)

    def test_it_waits_two_seconds_at_most(self):
        fake = self.fake().on("BATCH", rest=silent)

        async def main():
            client = AsyncClient(fake.url, timeout=LIMIT_S)
            one, *_ = [asyncio.create_task(self.hold(client, name))
                       for name in "abc"]
            await eventually(lambda: fake.batches, "a batch")
            one.cancel()
            began = time.monotonic()
            await asyncio.wait([one])
            self.assertLess(time.monotonic() - began, 2.8)
        asyncio.run(main())


class Memory(Case):
    @each_kind
    def test_what_was_asked_together_is_freed_without_a_collection(self, kind):
        fake, user, gate, busy = self.held_up(kind)
        more = self.collect(user, *[user.acquire(f"{number}", wait=0)
                                    for number in range(20)])
        gc.collect()
        flags = gc.get_debug()
        gc.set_debug(gc.DEBUG_SAVEALL)
        self.addCleanup(gc.garbage.clear)
        self.addCleanup(gc.set_debug, flags)
        gate.set()
        locks = self.results(*busy, *more)
        self.results(*map(user.release, locks))
        self.assertGreater(len(fake.batches), 0)
        user.end()
        del busy, more, locks, user
        gc.collect()
        left = {type(one).__qualname__ for one in gc.garbage
                if type(one).__module__.startswith("redlockd")}
        # what there is once for each client may be collected
        self.assertEqual(left & {"Call", "Trip", "Send", "Answer"}, set())


class Close(Case):
    @each_kind
    def test_what_is_collected_goes_on_and_leaves_no_connection(self, kind):
        fake, user, gate, busy = self.held_up(kind)
        more = self.collect(user, *[user.acquire(name, wait=0)
                                    for name in "abc"])
        courier = user.client._courier() if kind is Threads else \
            user.client._carrier
        user.shut()
        gate.set()
        self.results(*busy, *more)
        self.assertEqual(len(fake.batches), 1)
        self.assertEqual(courier._pool._idle._lines.get(None), None)
        self.assertFalse(any(courier._pool._idle._lines.values()))
        user.end()

    def test_a_forked_child_has_a_queue_of_its_own(self):
        fake, user, gate, busy = self.held_up(Threads)
        more = self.collect(user, *[user.acquire(name, wait=0)
                                    for name in "ab"])
        child = os.fork()
        if child == 0:
            code = 1
            try:
                with Lock("child", client=user.client, wait=0):
                    code = 0
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        self.assertEqual(len(fake.of("DELETE")), 1)
        gate.set()
        self.results(*busy, *more)
        user.end()


class Within(Case):
    def test_a_signal_handler_that_uses_a_lock_holds_up_nobody(self):
        """It may run while its own thread has the mutex of the client."""
        fake, user, gate, busy = self.held_up(Threads)

        def handler():
            with user.client._courier()._mutex, user.lock("a", wait=0):
                pass
        job = Job(handler)
        job.start()
        job.join(LIMIT_S)
        self.assertFalse(job.is_alive())
        self.assertEqual(len(fake.of("DELETE")), 1)
        gate.set()
        self.results(*busy)
        user.end()


class Lost(Case):
    @each_kind
    def test_a_renewal_in_a_batch_that_finds_it_lost(self, kind):
        gone = problem(404, "lock_not_found")
        fake = self.fake(renew_after_ms=300)
        user = kind(fake.url)
        lost = []
        futures = [user.acquire(f"{number}", wait=5, on_loss=lost.append)
                   for number in range(10)]
        locks = self.results(*futures)
        fake.fields["renew_after_ms"] = 60000
        fake.on("PUT", *[gone] * 3)
        wait_until(lambda: len(lost) == 3, "three are lost")
        wait_until(lambda: len(fake.of("PUT")) == 10, "all were asked")
        logging.getLogger("redlockd").setLevel(logging.CRITICAL)
        for lock in locks:
            is_lost = lock.remaining == 0
            end = user.release(lock)
            if is_lost:
                with self.assertRaises(LockLost):
                    end.result(LIMIT_S)
            else:
                end.result(LIMIT_S)
        self.assertEqual(len(lost), 3)
        user.end()
