"""Lock and Client against servers that fail."""
from __future__ import annotations

import logging
import os
import signal
import sys
import time
import unittest
from unittest import mock

from fake import Fake, WithFake, grant, late, page, problem, silent
from jobs import Job, together
from redlockd import (Client, Lock, LockHeld, LockLost, RequestRefused,
                      Unavailable)
from waiting import wait_until

HELD = problem(409, "lock_held", retry_after_ms=20, held_by={
    "owner": "web-3", "remaining_ms": 1500, "fencing_token": 7})
NO_QUORUM = problem(503, "no_quorum", retry_after_ms=10)


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

    def test_no_proxy_is_asked_for_this_machine(self):
        nobody = "http://127.0.0.1:1"
        for name in ("http_proxy", "all_proxy"):
            with mock.patch.dict(os.environ, {name: nobody}):
                for host in ("127.0.0.1", "localhost"):
                    fake = self.fake()
                    url = fake.url.replace("127.0.0.1", host)
                    with Lock("order:42", urls=url):
                        pass
                    self.assertEqual(len(fake.requests), 2)

    def test_no_password_is_logged(self):
        with self.assertLogs("redlockd", logging.DEBUG) as logs, \
                self.assertRaises(Unavailable):
            with Lock("x", wait=0, urls="http://me:secret@127.0.0.1:1"):
                pass
        self.assertNotIn("secret", "".join(logs.output))

    def test_a_permit_has_a_slot(self):
        fake = self.fake(ttl_ms=200, renew_after_ms=10)
        fake.on("POST", grant(limit=3, slots=[2]))
        with Lock("pool", limit=3, urls=fake.url) as lock:
            self.assertEqual((lock.slot, lock.slots), (2, (2,)))
            wait_until(lambda: fake.of("PUT"), "an extend")
            self.assertEqual(lock.slot, 2)
        body = fake.requests[0].body
        self.assertEqual((body["resource"], body["limit"], body["permits"]),
                         ("pool", 3, 1))

    def test_a_full_pool_is_told(self):
        fake = self.fake().on("POST", rest=problem(409, "lock_held"))
        with self.assertRaisesRegex(LockHeld, "too few of 3 permits are free"):
            with Lock("pool", limit=3, wait=0, urls=fake.url):
                pass

    def test_only_a_permit_has_a_slot(self):
        fake = self.fake()
        with Lock("order:42", urls=fake.url) as lock:
            self.assertEqual(lock.slots, ())
            with self.assertRaises(RuntimeError):
                lock.slot
        with self.assertRaises(ValueError):
            Lock("a", "b", limit=2)
        with self.assertRaises(ValueError):
            Lock("a", permits=2)

    def test_the_answer_may_come_as_late_as_the_wait_ends(self):
        fake = self.fake().on("POST", late(1.5, grant()))
        with Client(fake.url, timeout=1) as client:
            with Lock("a", wait=30, client=client):
                pass
        self.assertEqual(len(fake.of("POST")), 1)

    def test_held_without_waiting(self):
        fake = self.fake().on("POST", HELD)
        with self.assertRaises(LockHeld) as caught:
            Lock("a", wait=0, urls=fake.url).__enter__()
        self.assertEqual(len(fake.requests), 1)
        self.assertNotIn("wait_ms", fake.requests[0].body)
        error = caught.exception
        self.assertEqual((error.owner, error.remaining, error.fencing_token),
                         ("web-3", 1.5, 7))

    def test_an_interrupt_gives_the_lock_back(self):
        fake = self.fake().on("POST", silent)

        def interrupt():
            wait_until(lambda: fake.requests, "the request came")
            time.sleep(0.05)
            os.kill(os.getpid(), signal.SIGINT)

        # a job in the background ignores it
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with Client(fake.url) as client:
            Job(interrupt).start()
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

        def interrupt():
            for count in 1, 2:
                wait_until(lambda: len(fake.requests) == count, "a request")
                time.sleep(0.05)
                os.kill(os.getpid(), signal.SIGINT)

        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        self.addCleanup(signal.signal, signal.SIGINT, before)
        with Client(fake.url, timeout=30) as client:
            Job(interrupt).start()
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

    def test_nobody_answers(self):
        fake = self.fake().on("DELETE", rest=NO_QUORUM)
        logging.getLogger("redlockd").setLevel(logging.WARNING)
        with self.assertLogs("redlockd", "WARNING") as logs:
            with Lock("a", urls=fake.url) as lock:
                token = lock.token
        self.assertEqual(len(fake.of("DELETE")), 2)
        self.assertIn("not released", logs.output[-1])
        self.assertNotIn(token, "".join(logs.output))

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
    def test_connections_are_reused(self):
        fake = self.fake()
        with Client(fake.url) as client:
            for _ in range(10):
                with Lock("a", client=client):
                    pass
        self.assertEqual(len({one.connection for one in fake.requests}), 1)

    def test_threads_share_a_client(self):
        fake = self.fake(renew_after_ms=5)

        def work():
            for _ in range(10):
                with Lock("a", client=client) as lock:
                    lock.check()

        with Client(fake.url) as client:
            together([work] * 8)
        self.assertEqual(len(fake.of("DELETE")), 80)

    def test_not_twice_at_a_time(self):
        fake = self.fake()
        lock = Lock("a", urls=fake.url)
        with lock, self.assertRaises(RuntimeError):
            lock.__enter__()
        with lock:
            lock.check()

    def test_used_again_after_a_refusal(self):
        fake = self.fake().on("POST", problem(400, "invalid_request"))
        lock = Lock("a", urls=fake.url)
        with self.assertRaises(RequestRefused):
            lock.__enter__()
        with lock:
            lock.check()

    def test_a_refusal_that_is_not_from_redlockd_says_where_it_is_from(self):
        for status in 302, 403, 404, 409:
            for kind, shown in (("text/html", "text/html"),
                                ("", "no Content-Type"),
                                ("a\x9bb" + "c" * 99, "a?b" + "c" * 77)):
                answer = page(status, '{"error":"no"}', Content_Type=kind)
                fake = self.fake().on("POST", rest=answer)
                fake.on("GET", rest=answer).on("DELETE", rest=answer)
                url = fake.url.replace("://", "://me:password@")
                text = f": {status} from {fake.url}, not from redlockd ({shown})"
                with Client(url) as client:
                    for call in (Lock("a", client=client).acquire,
                                 lambda c=client: c.get("a"),
                                 lambda c=client: list(c.locks()),
                                 lambda c=client: c.force_release("a", 7)):
                        with self.assertRaises(RequestRefused) as caught:
                            call()
                        self.assertTrue(str(caught.exception).endswith(text),
                                        caught.exception)

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

    def test_the_token_is_not_shown(self):
        fake = self.fake()
        with Lock("a", urls=fake.url) as lock:
            self.assertNotIn(lock.token, repr(lock) + repr(vars(lock)) +
                             repr(lock._held.grant))
