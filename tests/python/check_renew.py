# SPDX-License-Identifier: MIT
"""Renewals of a Lock over servers that fail."""
from __future__ import annotations

import threading
import time
import unittest

from fake import WithFake, after_release, problem, silent, trickle
from redlockd import Client, Lock, LockLost
from redlockd._clock import now
from waiting import wait_until

NO_QUORUM = problem(503, "no_quorum", retry_after_ms=10)
GONE = problem(404, "lock_not_found")


class Renew(WithFake, unittest.TestCase):
    def test_another_replica_extends_while_the_first_is_silent(self):
        one, two = self.fake(renew_after_ms=10, validity_ms=4000), self.fake()
        one.on("PUT", rest=silent)
        with Lock("a", urls=[one.url, two.url]) as lock:
            wait_until(lambda: two.of("PUT"), "the other extends")
            lock.check()
            wait_until(lambda: lock.remaining > 8, "the new validity")

    def lost(self, fake):
        """Holds a lock until it is lost; what leaving the block raised."""
        losses = []
        with self.assertRaises(LockLost) as caught:
            with Lock("a", urls=fake.url, on_loss=losses.append) as lock:
                until = lock._held.grant.work_until
                self.assertTrue(lock.lost.wait(20))
                at = now()
                with self.assertRaises(LockLost):
                    lock.check()
                self.assertEqual(lock.remaining, 0)
                wait_until(lambda: losses, "the callback")
        self.assertEqual(losses, [caught.exception])
        self.assertEqual(len(fake.of("DELETE")), 1)  # some may be left
        return until - at

    def test_gone_is_lost_at_once(self):
        for code, status in ("lock_not_found", 404), ("not_owner", 409):
            fake = self.fake(renew_after_ms=20)
            fake.on("PUT", problem(status, code))
            self.assertGreater(self.lost(fake), 5)
            self.assertEqual(len(fake.of("PUT")), 1)

    def test_without_an_extend_lost_when_the_validity_ends(self):
        for rest in NO_QUORUM, trickle:
            fake = self.fake(renew_after_ms=20, validity_ms=1000)
            fake.on("PUT", rest=rest)
            self.assertLessEqual(self.lost(fake), 0)

    def test_no_renewal_after_the_release(self):
        fake = self.fake(renew_after_ms=100)
        with Client(fake.url) as client:
            for _ in range(5):
                with Lock("a", client=client):
                    pass
            time.sleep(0.1)  # for one that is on its way
            before = len(fake.of("PUT"))
            time.sleep(0.4)
            self.assertEqual(len(fake.of("PUT")), before)

    def test_no_loss_after_the_release(self):
        fake = self.fake(renew_after_ms=1).on("PUT", rest=after_release(GONE))
        losses = []
        with Client(fake.url) as client:
            with Lock("a", client=client, on_loss=losses.append) as lock:
                wait_until(lambda: fake.of("PUT"), "an extend")
            time.sleep(0.3)  # for the answer to the extend
        self.assertEqual(losses, [])
        self.assertFalse(lock.lost.is_set())

    def test_a_server_that_hangs_holds_up_no_other_client(self):
        """Renewals share a thread, unless it waits."""
        hung, good = self.fake(renew_after_ms=20), self.fake(renew_after_ms=20)
        hung.on("PUT", rest=silent)
        locks = [Lock("a", urls=hung.url) for _ in range(3)]
        for lock in locks:
            lock.acquire()
        wait_until(lambda: hung.of("PUT"), "it hangs")
        with Lock("b", urls=good.url):
            began = now()
            wait_until(lambda: len(good.of("PUT")) > 5, "renewals")
            self.assertLess(now() - began, 4)
        for lock in locks:
            lock.release()

    def test_many_locks_share_a_thread(self):
        fake = self.fake(renew_after_ms=500)
        before = threading.active_count()
        with Client(fake.url) as client:
            locks = [Lock(f"{number}", client=client) for number in range(120)]
            for lock in locks:
                lock.acquire()
            servers = threading.active_count() - before
            wait_until(lambda: len(fake.of("PUT")) > 300, "renewals")
            # those of the fake server are among them, one a connection
            self.assertLess(threading.active_count() - before, servers + 10)
            for lock in locks:
                lock.release()
        in_batches = sum(len(one.body["operations"]) for one in fake.batches)
        self.assertGreater(in_batches, 250)
        self.assertLess(len(fake.batches), in_batches / 4)

    def test_what_the_block_raises_goes_first(self):
        fake = self.fake(renew_after_ms=20).on("PUT", GONE)
        with self.assertRaises(ZeroDivisionError):
            with Lock("a", urls=fake.url) as lock:
                self.assertTrue(lock.lost.wait(20))
                raise ZeroDivisionError
