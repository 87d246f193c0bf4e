# SPDX-License-Identifier: MIT
"""A package over a real redlockd that asks who is there; see check_faults.py."""
from __future__ import annotations

import os
import pathlib
import unittest

from check_faults import Holder
from guarded import WAIT_S, WithGuarded, identity
from processes import end
from waiting import wait_until

TOKEN, NEXT = "first+token/of~2026==", "second.token"


class Case(WithGuarded, unittest.TestCase):
    def holder(self, guard, resource="a", **variables):
        os.environ.update(variables)
        try:
            holder = Holder([guard.url], resource, ttl_ms=3000)
        finally:
            for name in variables:
                del os.environ[name]
        self.addCleanup(end, holder.process)
        return holder

    def test_a_token_lets_in(self):
        guard = self.guarded(identity("batch", TOKEN, "lock prefix=b/"))
        ca = {"REDLOCKD_CACERT": self.certificates["ca.pem"]}
        for token, resource, told in ((TOKEN, "b/1", "held"), (NEXT, "b/1", "401"),
                                      (TOKEN, "c/1", "403")):
            holder = self.holder(guard, resource, REDLOCKD_AUTH_TOKEN=token, **ca)
            wait_until(lambda one=holder: one.lines, told, WAIT_S)
            self.assertIn(told, " ".join(holder.lines[0]))
            holder.finish()
        for certificate, trusted in (("server", {}), ("expired", ca),
                                     ("elsewhere", ca), ("foreign", ca)):
            guard.serve(certificate)
            holder = self.holder(guard, "b/1", REDLOCKD_AUTH_TOKEN=TOKEN,
                                 **trusted)
            holder.wait("not")
            self.assertIn("certificate", holder.text("not"))

    def test_a_certificate_lets_in(self):
        guard = self.guarded("gate cert:dns:gateway lock,read prefix=*",
                             client_ca="ca.pem")
        holder, stranger = (self.holder(
            guard, REDLOCKD_CACERT=self.certificates["ca.pem"],
            REDLOCKD_CERT=self.certificates[f"{name}.pem"],
            REDLOCKD_KEY=self.certificates[f"{name}.key"])
            for name in ("client", "stranger"))
        holder.wait("held")
        holder.finish()
        self.assertEqual(holder.text("released"), "<nil>")
        self.assertEqual(stranger.lines, [])

    def test_a_limited_client_waits(self):
        guard = self.guarded(identity("few", TOKEN, "lock locks=1"))
        both = [self.holder(guard, resource, REDLOCKD_AUTH_TOKEN=TOKEN,
                            REDLOCKD_CACERT=self.certificates["ca.pem"])
                for resource in "ab"]
        wait_until(lambda: any(one.lines for one in both), "one is held", WAIT_S)
        first, second = sorted(both, key=lambda one: not one.lines)
        first.works_on(1500)
        self.assertEqual(second.lines, [])
        first.finish()
        second.wait("held")
        second.finish()

    def test_a_token_and_a_certificate_are_replaced_while_a_lock_is_held(self):
        guard = self.guarded(identity("batch", TOKEN))
        file = self.folder / "token"
        file.write_text(TOKEN)
        both = self.folder / "both.pem"
        both.write_text("".join(pathlib.Path(self.certificates[name]).read_text()
                                for name in ("ca.pem", "other-ca.pem")))
        holder = self.holder(guard, REDLOCKD_AUTH_TOKEN_FILE=str(file),
                             REDLOCKD_CACERT=str(both))
        holder.wait("held")
        guard.admit(identity("batch", NEXT))
        file.write_text(NEXT)
        guard.serve("foreign")
        holder.works_on(7000)  # beyond its TTL, twice
        holder.finish()
        self.assertEqual(holder.text("released"), "<nil>")
