# SPDX-License-Identifier: MIT
"""Lock and Client against servers that fail."""
from __future__ import annotations

import os
import sys
import time
import unittest
from unittest import mock

from fake import Fake, WithFake, grant, late, page, problem, silent
from redlockd import Client, Lock, LockLost, RequestRefused
from waiting import wait_until


class Case(WithFake, unittest.TestCase):
    pass


class Acquire(Case):
    def test_what_is_sent_and_what_is_told(self):
        fake = self.fake()
        with Lock("order:42", ttl=30, wait=5, owner="web-3",
                  urls=fake.url) as lock:
            self.assertGreater(lock.fencing_token, 1_795_221_641_864_999)
            self.assertGreater(lock.remaining, 20)
            token = lock.token
            lock.check()
        post, delete = fake.requests
        wait_ms = post.body.pop("wait_ms")
        self.assertTrue(4000 < wait_ms <= 5000, wait_ms)
        self.assertEqual(post.body, {"resource": "order:42", "ttl_ms": 30000,
                                     "owner": "web-3"})
        self.assertEqual((post.method, post.path), ("POST", "/locks"))
        self.assertEqual((delete.method, delete.path),
                         ("DELETE", "/locks/an~id"))
        self.assertEqual(delete.headers["x-lock-token"], token)

    def test_only_a_permit_has_a_slot(self):
        fake = self.fake()
        with Lock("order:42", urls=fake.url) as lock:
            self.assertEqual(lock.slots, ())
            with self.assertRaises(RuntimeError):
                lock.slot
        with self.assertRaises(ValueError):
            Lock("a", "b", limit=2)
        for how in {"permits": 2}, {"limit": 2, "shared": True}:
            with self.assertRaises(ValueError):
                Lock("a", **how)

    def test_the_answer_may_come_as_late_as_the_wait_ends(self):
        fake = self.fake().on("POST", late(1.5, grant()))
        with Client(fake.url, timeout=1) as client:
            with Lock("a", wait=30, client=client):
                pass
        self.assertEqual(len(fake.of("POST")), 1)

    def test_an_interrupt_gives_the_lock_back(self):
        fake = self.fake().on("POST", silent)
        self.interrupt_when(lambda: fake.requests)
        with Client(fake.url) as client:
            with self.assertRaises(KeyboardInterrupt):
                Lock("a", client=client).__enter__()
            wait_until(lambda: fake.left, "the connection was closed")
        given_up, again = fake.of("POST")
        self.assertEqual(again.headers["idempotency-key"],
                         given_up.headers["idempotency-key"])
        self.assertEqual(again.body["ttl_ms"], 100)
        self.assertNotIn("wait_ms", again.body)
        self.assertEqual(len(fake.of("DELETE")), 1)

    def test_another_interrupt_ends_it_at_once(self):
        fake = self.fake().on("POST", rest=silent)
        self.interrupt_when(lambda: len(fake.requests) == 1,
                            lambda: len(fake.requests) == 2)
        with Client(fake.url, timeout=30) as client:
            began = time.monotonic()
            with self.assertRaises(KeyboardInterrupt):
                Lock("a", client=client).__enter__()
            self.assertLess(time.monotonic() - began, 1.5)


class Fakes(Case):
    def test_one_that_is_broken_is_noticed(self):
        """Although the client takes it for a lost answer, and repeats."""
        fake = Fake().on("POST", lambda handler, _: handler.no_such_thing())
        with Lock("a", urls=fake.url):
            pass
        with self.assertRaisesRegex(AssertionError, "no_such_thing"):
            fake.close()


class Release(Case):
    def test_the_lock_had_ended(self):
        fake = self.fake().on("DELETE", problem(409, "not_owner"))
        with self.assertRaises(LockLost):
            with Lock("a", urls=fake.url):
                pass

    def test_released_if_the_block_raises(self):
        fake = self.fake()
        with self.assertRaises(ZeroDivisionError):
            with Lock("a", urls=fake.url):
                raise ZeroDivisionError
        self.assertEqual(len(fake.of("DELETE")), 1)

    def test_a_forked_child_leaves_the_lock_alone(self):
        fake = self.fake()
        parent = os.getpid()
        try:
            with Lock("a", urls=fake.url):
                child = os.fork()
                if child:
                    self.assertEqual(os.waitpid(child, 0)[1], 0)
                    self.assertEqual(fake.of("DELETE"), [])
        finally:
            if os.getpid() != parent:
                os._exit(0 if sys.exc_info()[0] is None else 1)
        self.assertEqual(len(fake.of("DELETE")), 1)

    def test_a_forked_child_has_connections_of_its_own(self):
        fake = self.fake()
        with Client(fake.url) as client:
            with Lock("a", client=client):
                pass
            child = os.fork()
            if child == 0:
                with Lock("b", client=client):
                    os._exit(0)
            self.assertEqual(os.waitpid(child, 0)[1], 0)
            with Lock("c", client=client):
                pass
        first, _, forked, third, _ = (one.connection for one in fake.requests)
        self.assertEqual(first, third)
        self.assertNotEqual(first, forked)


class Objects(Case):
    def test_not_twice_at_a_time(self):
        fake = self.fake()
        lock = Lock("a", urls=fake.url)
        with lock, self.assertRaises(RuntimeError):
            lock.__enter__()
        with lock:
            lock.check()

    def test_a_refusal_that_is_not_from_redlockd_says_where_it_is_from(self):
        for kind, shown in (("text/html", "text/html"), ("", "Content-Type"),
                            ("a\x9bb" + "c" * 99, "a?b" + "c" * 77 + ")")):
            answer = page(403, '{"error":"no"}', Content_Type=kind)
            fake = self.fake().on("POST", rest=answer).on("GET", rest=answer)
            with Client(fake.url.replace("://", "://me:secret@")) as client:
                for call in (Lock("a", client=client).acquire,
                             lambda c=client: list(c.locks())):
                    with self.assertRaises(RequestRefused) as caught:
                        call()
                    for word in fake.url, shown:
                        self.assertIn(word, str(caught.exception))

    def test_a_lock_that_was_never_acquired(self):
        with self.assertRaises(RuntimeError):
            Lock("a").check()
        with self.assertRaises(ValueError):
            Lock()

    def test_urls(self):
        fake = self.fake()
        with mock.patch.dict(os.environ, REDLOCKD_URL=f"{fake.url}/ , "):
            with Lock("a"):
                pass
        self.assertEqual(len(fake.of("POST")), 1)
        for urls in "", [], "localhost:8080", ["ftp://a"]:
            with self.assertRaises(ValueError):
                Client(urls)
