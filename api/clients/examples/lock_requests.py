# SPDX-License-Identifier: MIT
"""A lock of redlockd for work that blocks, with requests; for Linux."""
import contextlib
import functools
import os
import random
import signal
import sys
import threading
import time
import uuid

import requests

now = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)
BEARER = os.environ.get("REDLOCKD_AUTH_TOKEN")  # our token, if redlockd wants one


class LockLost(Exception):
    """Stop work: somebody else may hold the lock."""


class Lock:
    """`with Lock(…):`. A loss interrupts the main thread, by SIGUSR1, wherever
    it is; a lock that another thread has taken tells that thread in check()."""

    of_main = []  # the locks that the main thread holds

    def __init__(self, urls, resource, ttl_ms=30000, wait_ms=60000, **more):
        """more: limit=…, or mode="shared"."""
        self.urls = list(urls)
        self.want = {"resource": resource, "ttl_ms": ttl_ms, **more}
        self.ttl_ms, self.wait_ms = ttl_ms, wait_ms
        self.done = threading.Event()

    def __enter__(self):
        self.is_of_main = threading.current_thread() is threading.main_thread()
        if self.is_of_main:
            signal.signal(signal.SIGUSR1, Lock.check_all)
        self.head = {"Idempotency-Key": str(uuid.uuid4())}  # the same for each repeat
        if BEARER:
            self.head["Authorization"] = f"Bearer {BEARER}"
        self.acquire()
        self.slots = self.grant.get("slots")  # with a limit
        if self.is_of_main:
            Lock.of_main.append(self)
        self.renewer = threading.Thread(target=self.renew)
        self.renewer.start()
        return self

    def __exit__(self, *_):
        if self.is_of_main:
            Lock.of_main.remove(self)
        self.done.set()
        self.renewer.join()
        self.ask("DELETE", f"/locks/{self.grant['id']}", 2, token=self.grant["token"])

    def left_s(self):
        """A tenth of the TTL is for ending the work."""
        return self.until - self.ttl_ms / 10000 - now()

    def check(self):
        """Call it right before each step that cannot be undone."""
        if self.left_s() <= 0:
            raise LockLost

    @staticmethod
    def check_all(*_):
        for held in list(Lock.of_main):
            held.check()

    def acquire(self):
        deadline, status = now() + self.wait_ms / 1000, 0
        while status not in (200, 201):
            wait_s = min(max(deadline - now(), 0), 10)
            status, self.grant = self.ask("POST", "/locks", wait_s + 2, **self.want,
                                          wait_ms=int(wait_s * 1000))
            if status >= 300 and (status not in (409, 503) or now() > deadline):
                wrong = TimeoutError if status in (409, 503) else ValueError
                raise wrong(f"{self.want}: {status} {self.grant}")
            if status == 503:
                time.sleep(random.uniform(0.2, 1) + self.grant.get("retry_after_ms", 0) / 1000)

    def renew(self):
        while not self.done.wait(max(min(self.renew_at - now(), self.left_s()), 0)):
            if (left_s := self.left_s()) <= 0:
                if self.is_of_main:
                    os.kill(os.getpid(), signal.SIGUSR1)  # calls check_all()
                return
            self.renew_at = now() + self.ttl_ms / 20000  # unless this succeeds
            path, token = f"/locks/{self.grant['id']}/extend", self.grant["token"]
            _, answer = self.ask("PUT", path, left_s / len(self.urls), token=token,
                                 ttl_ms=self.ttl_ms)
            if answer.get("code") in ("lock_not_found", "not_owner"):
                self.until = 0

    def ask(self, method, path, limit_s, **body):
        """The status and the answer of the first replica that has one."""
        for _ in self.urls:
            sent, url, got = now(), self.urls[0] + path, {}
            with contextlib.suppress(requests.RequestException):
                reply = requests.request(method, url, json=body, timeout=limit_s, headers=self.head)
                got = reply.json()
                if "validity_ms" in got:
                    granted, self.fence = sent + got["elapsed_ms"] / 1000, got["fencing_token"]
                    self.until = granted + got["validity_ms"] / 1000
                    self.renew_at = granted + got["renew_after_ms"] / 1000
                if reply.status_code < 429:
                    return reply.status_code, got
            self.urls.append(self.urls.pop(0))
        return 503, got


if __name__ == "__main__":  # RESOURCE TTL_MS WAIT_MS WORK_MS
    with Lock(os.environ["URLS"].split(), sys.argv[1], *map(int, sys.argv[2:4])) as lock:
        for _ in range(int(sys.argv[4]) // 50):
            time.sleep(0.05)
            lock.check()
            print("working", time.time_ns() // 10**6, lock.fence, flush=True)
