# SPDX-License-Identifier: MIT
"""Locks of a package over five Redis masters and real redlockd, with faults:
the work never outlives the lock. HOLDER: the program that works under a lock, as
tests/go/user/holder says. TRIES: how often each fault is played."""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
import unittest

from cut import AnswerLost
from jobs import Job
from processes import end, spawn, stopped
from proxy import Proxy
from stack import ask
from waiting import wait_until
from world import World

HOLDER = os.environ["HOLDER"].split()
TRIES = int(os.environ.get("TRIES") or 1)
# A tenth of it is left when the context ends: time for a busy machine to wake
# the holder.
TTL_MS = 3000
BUSY_S = 60  # for what takes a moment on a machine that has time


def now_ns():
    return time.monotonic_ns()


class Holder:
    """A process that works while it holds the lock, and what it told."""

    def __init__(self, urls, resource, *more, ttl_ms=TTL_MS):
        environment = {**os.environ, "REDLOCKD_URL": ",".join(urls)}
        self.process = spawn(
            *HOLDER, resource, ttl_ms, *more, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=environment)
        self.lines = []
        self.reader = Job(self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.split(maxsplit=2))

    def of(self, what):
        """Moments, in ns."""
        return [int(line[1]) for line in list(self.lines) if line[0] == what]

    def text(self, what):
        return [line[2].strip() for line in list(self.lines)
                if line[0] == what][0]

    def wait(self, what, count=1):
        wait_until(lambda: len(self.of(what)) >= count, what, BUSY_S)

    def works_on(self, for_ms):
        """Until a step that much later."""
        until = now_ns() + for_ms * 1_000_000
        wait_until(lambda: self.of("step")[-1:] > [until] or
                   self.process.poll() is not None, "work", BUSY_S)

    def signal(self, number):
        self.process.send_signal(number)

    def finish(self):
        """It releases the lock, if it still has it."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(BUSY_S)
        self.reader.join(BUSY_S)


class Rival(Job):
    """Waits for the same lock, at a server of its own. It certainly had no grant
    before `since`, and had one when it was `told`."""

    def __init__(self, port, resource):
        super().__init__()
        self.port, self.resource = port, resource
        self.since = self.told = 0
        self.grant = {}
        self.start()

    def work(self):
        until = now_ns() + BUSY_S * 10**9
        while now_ns() < until:
            sent = now_ns()
            status, answer = ask(self.port, "POST", "/locks", {
                "resource": self.resource, "ttl_ms": TTL_MS, "wait_ms": 5000})
            if status == 201:
                self.since = sent + answer.get("waited_ms", 0) * 1_000_000
                self.told = now_ns()
                self.grant = answer
                return
            time.sleep(0.01 if status else 0.1)

    def leave(self):
        ask(self.port, "DELETE", f"/locks/{self.grant['id']}", None,
            {"X-Lock-Token": self.grant["token"]})


class Case(unittest.TestCase):
    """Servers 0 and 1 are the holder's, and 2 is the rival's."""

    options = ()  # of the servers

    @classmethod
    def setUpClass(cls):
        cls.world = World.ready(3, *cls.options)
        cls.number = 0

    @classmethod
    def tearDownClass(cls):
        cls.world.__exit__()

    @property
    def urls(self):
        return [f"http://{one.address}" for one in self.world.servers[:2]]

    def port(self, number):
        return int(self.world.servers[number].address.split(":")[1])

    def revive(self):
        """A server in the place of each that was killed."""
        for number, server in enumerate(self.world.servers):
            if server.process.poll() is not None:
                self.world.servers[number] = self.world.start_server(*self.options)
                self.world.servers.pop()
        self.world.settle()

    def setUp(self):
        self.revive()  # what an earlier test has left

    @contextlib.contextmanager
    def tries(self):
        """Plays one try: a holder that works, and a rival that waits."""
        type(self).number += 1
        resource = f"{self.id().rpartition('.')[2]}{self.number}"
        holder = Holder(self.urls, resource)
        try:
            holder.wait("step", 10)
            # from 100 ms on it is; before, two nodes may be two of its three
            wait_until(lambda: self.world.holders(resource) == 5,
                       "it is on all nodes", BUSY_S)
            rival = Rival(self.port(2), resource)
            yield holder, rival, resource
        finally:
            end(holder.process)

    def ends(self, holder, rival, kinds=("step", "ctx"), is_released=False):
        """After what ended the lock: the rival gets it, and no work was done
        from then on."""
        rival.join(BUSY_S)
        self.assertTrue(rival.since, "the rival did not get the lock")
        holder.finish()
        # after a release, the rival has it within less than a millisecond
        until = rival.told if is_released else rival.since
        for what in kinds:
            self.assertGreater(len(holder.of(what)), 0)
            self.assertLess(max(holder.of(what)), until, what)
        rival.leave()

    def assert_lost(self, holder):
        self.assertRegex(holder.text("lost"), "^true")
        self.assertNotIn("the lock ended", holder.text("lost"))

    def assert_kept(self, holder, rival):
        """Beyond its TTL, and until it is released."""
        holder.works_on(1.3 * TTL_MS)
        self.assertEqual(rival.since, 0, holder.lines[-2:])
        self.assertIsNone(holder.process.poll(), holder.lines[-2:])
        holder.process.stdin.close()
        self.ends(holder, rival, is_released=True)
        self.assertEqual(holder.text("released"), "<nil>")


class Faults(Case):
    def test_nothing(self):
        with self.tries() as (holder, rival, _):
            self.assert_kept(holder, rival)

    def test_a_server_is_killed(self):
        for _ in range(TRIES):
            with self.tries() as (holder, rival, _):
                end(self.world.servers[0].process)
                self.assert_kept(holder, rival)
            self.revive()

    def test_a_server_is_paused(self):
        for _ in range(TRIES):
            with self.tries() as (holder, rival, _), \
                    stopped([self.world.servers[0].process]):
                self.assert_kept(holder, rival)

    def test_all_its_servers_are_killed(self):
        for _ in range(TRIES):
            with self.tries() as (holder, rival, _):
                for server in self.world.servers[:2]:
                    end(server.process)
                self.ends(holder, rival)
                self.assert_lost(holder)
            self.revive()

    def test_all_its_servers_are_paused(self):
        for _ in range(TRIES):
            with self.tries() as (holder, rival, _), stopped(
                    one.process for one in self.world.servers[:2]):
                self.ends(holder, rival)
                self.assert_lost(holder)

    def test_two_nodes_are_paused(self):
        for _ in range(TRIES):
            with self.tries() as (holder, rival, _), stopped(
                    one.process for one in self.world.nodes[:2]):
                self.assert_kept(holder, rival)

    def test_three_nodes_are_paused(self):
        """Nobody can extend it; nobody gets it before they are back."""
        for _ in range(TRIES):
            with self.tries() as (holder, rival, _):
                with stopped(one.process for one in self.world.nodes[:3]):
                    at = now_ns()
                    holder.wait("lost")
                # the last extend was sent before
                self.assertLess(max(holder.of("step") + holder.of("ctx")),
                                at + TTL_MS * 1_000_000)
                self.ends(holder, rival)
                self.assert_lost(holder)
            self.world.settle()

    def test_the_nodes_forget_the_lock(self):
        """Nothing protects from that; but the next renewal notices."""
        for _ in range(TRIES):
            with self.tries() as (holder, rival, resource):
                self.world.vacate(resource, self.world.nodes)
                holder.wait("lost")
                rival.join(BUSY_S)
                holder.finish()
                self.assertRegex(holder.text("lost"), "true.*the lock ended")
                rival.leave()

    def test_the_client_is_stopped_beyond_its_validity(self):
        for _ in range(TRIES):
            with self.tries() as (holder, rival, _):
                holder.signal(signal.SIGSTOP)
                rival.join(BUSY_S)
                holder.signal(signal.SIGCONT)
                holder.wait("lost")
                # what looks only at its context may do one more step
                self.ends(holder, rival, ["step"])
                late = [at for at in holder.of("ctx") if at >= rival.since]
                self.assertLessEqual(len(late), 3)
                self.assert_lost(holder)

    def test_the_client_is_killed(self):
        for _ in range(TRIES):
            with self.tries() as (holder, rival, _):
                end(holder.process)
                at = now_ns()
                rival.join(BUSY_S)
                self.assertLess(at, rival.since)
                rival.leave()


class Answers(Case):
    options = "--max-ttl-ms", "60000"

    def test_a_lost_grant_is_got_again(self):
        for attempt in range(TRIES):
            with AnswerLost(self.world.servers[0].address) as proxy:
                holder = Holder([f"http://{proxy.address}", self.urls[1]],
                                f"lost{attempt}", ttl_ms=10_000)
                self.addCleanup(end, holder.process)
                at = now_ns()
                holder.wait("held")
                self.assertEqual(proxy.lost, 1)
                # with another key, it would wait for its own lost grant
                self.assertLess(holder.of("held")[0] - at, 9e9)
                holder.finish()

    def test_an_acquire_that_is_cancelled_leaves_no_lock(self):
        for attempt in range(TRIES):
            server = self.world.servers[0]
            server.port = self.port(0)
            proxy = Proxy(server)
            self.addCleanup(proxy.close)
            proxy.slow_replies_s = [2]  # the grant, which nobody reads
            holder = Holder([f"http://{proxy.address}"], f"cancel{attempt}",
                            "cancel", 300, ttl_ms=4000)
            self.addCleanup(end, holder.process)
            holder.wait("not")
            status, answer = ask(self.port(1), "POST", "/locks", {
                "resource": f"cancel{attempt}", "ttl_ms": 100})
            self.assertEqual(status, 201, answer)
            self.assertEqual(proxy.slow_replies_s, [])
