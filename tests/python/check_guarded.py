"""The package over a real redlockd that asks who is there. check_identity.py
tries more than redlockd does; here both have to understand each other."""
from __future__ import annotations

import logging
import os
import time
import unittest
from unittest import mock

from guarded import WAIT_S, WithGuarded, identity
from redlockd import (AsyncClient, AsyncLock, Client, Forbidden, Lock,
                      RateLimited, Unauthorized, Untrusted)
from waiting import wait_until

TOKEN, NEXT = "first+token/of~2026==", "second.token"


class Case(WithGuarded, unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        logging.getLogger("redlockd").setLevel(logging.CRITICAL)
        kept = {name: text for name, text in os.environ.items()
                if not name.startswith("REDLOCKD_")}
        patch = mock.patch.dict(os.environ, kept, clear=True)
        patch.start()
        cls.addClassCleanup(patch.stop)

    def client(self, guard, ca="ca.pem", **how):
        return self.enterContext(
            Client(guard.url, ca_file=self.certificates[ca], **how))

    def acquire(self, client, resource="a", **how):
        with Lock(resource, client=client, **how) as lock:
            return lock.fencing_token

    def extended(self, lock):
        until = lock._held.grant.until
        wait_until(lambda: lock._held.grant.until > until, "extended", WAIT_S)

    async def test_a_token_lets_in(self):
        guard = self.guarded(identity("batch", TOKEN, "lock prefix=b/"),
                             identity("reader", NEXT, "read"))
        self.assertGreater(
            self.acquire(self.client(guard, auth_token=TOKEN), "b/1"), 0)
        async with AsyncClient(guard.url, auth_token=TOKEN,
                               ca_file=self.certificates["ca.pem"]) as client:
            async with AsyncLock("b/1", client=client) as lock:
                self.assertGreater(lock.fencing_token, 0)
        for token, resource, refusal in (
                (None, "b/1", Unauthorized), ("wrong", "b/1", Unauthorized),
                (TOKEN, "c/1", Forbidden), (NEXT, "b/1", Forbidden)):
            how = {"auth_token": token} if token else {}
            with self.assertRaises(refusal):
                self.acquire(self.client(guard, **how), resource)

    def test_a_certificate_lets_in(self):
        guard = self.guarded("gate cert:dns:gateway lock,read prefix=*",
                             identity("batch", TOKEN), client_ca="ca.pem")
        mine = {"cert_file": self.certificates["client.pem"],
                "key_file": self.certificates["client.key"]}
        client = self.client(guard, **mine)
        with Lock("a", client=client):
            self.assertEqual([lock.owner for lock in client.locks()], ["gate"])
        with self.assertRaises(Unauthorized):
            self.acquire(self.client(guard, auth_token=NEXT, **mine))

    def test_a_token_is_rotated_while_a_lock_is_held(self):
        guard = self.guarded(identity("batch", TOKEN))
        file = self.folder / "token"
        file.write_text(TOKEN)
        client = self.client(guard, auth_token_file=file)
        with Lock("a", ttl=3, client=client) as lock:
            guard.admit(identity("batch", NEXT))
            file.write_text(NEXT)
            self.extended(lock)
            self.extended(lock)
            lock.check()
        self.acquire(client, wait=0)
        with self.assertRaises(Unauthorized):
            self.acquire(self.client(guard, auth_token=TOKEN))

    def test_a_certificate_is_replaced_while_a_lock_is_held(self):
        guard = self.guarded(identity("batch", TOKEN))
        client = self.client(guard, auth_token=TOKEN)
        with Lock("a", ttl=3, client=client) as lock:
            guard.serve("foreign")
            self.extended(lock)
            with self.assertRaises(Untrusted):
                self.acquire(self.client(guard, auth_token=TOKEN), "b")
            self.acquire(self.client(guard, "other-ca.pem", auth_token=TOKEN),
                         "b")
            lock.check()

    def test_a_limited_client_waits(self):
        guard = self.guarded(identity("batch", TOKEN, "lock rate=1 burst=2"),
                             identity("few", NEXT, "lock locks=1"))
        client = self.client(guard, auth_token=TOKEN)
        began = time.monotonic()
        for _ in range(3):
            self.acquire(client, wait=60)
        self.assertGreaterEqual(time.monotonic() - began, 2)
        other = self.client(guard, auth_token=NEXT)
        with Lock("a", client=other):
            with self.assertRaises(RateLimited):
                self.acquire(other, "b", wait=0)
        self.acquire(other, "b", wait=0)


if __name__ == "__main__":
    unittest.main()
