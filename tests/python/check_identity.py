# SPDX-License-Identifier: MIT
"""Tokens, certificates and limits: who is let in, and what is told if not."""
from __future__ import annotations

import json
import logging
import os
import pathlib
import shutil
import socket
import ssl
import tempfile
import unittest
from unittest import mock

from certificates import Certificates
from fake import WithFake, grant, knows, page, problem, usual
from redlockd import (AsyncClient, AsyncLock, Client, Lock, Unauthorized,
                      Unavailable, Untrusted)
from waiting import wait_until

TOKEN, NEXT = "first+token/of~2026==", "second.token"


class Case(WithFake, unittest.IsolatedAsyncioTestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="identity."))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.certificates = Certificates(cls.folder)

    def setUp(self):
        super().setUp()
        kept = {name: text for name, text in os.environ.items()
                if not name.startswith("REDLOCKD_")}
        patch = mock.patch.dict(os.environ, kept, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def write(self, text):
        file = self.folder / "token"
        (self.folder / "new").write_bytes(text.encode())
        (self.folder / "new").rename(file)
        return file

    def knowing(self, *tokens, **fields):
        fake = self.fake(**fields)
        for method in "GET", "POST", "PUT", "DELETE":
            fake.on(method, rest=knows(*tokens))
        return fake

    def acquire(self, client, **how):
        with Lock("a", client=client, **how):
            pass

    async def acquire_async(self, client, **how):
        async with AsyncLock("a", client=client, **how):
            pass


class Tokens(Case):
    async def test_is_sent_with_each_request(self):
        file = self.write(f"{TOKEN}\n")
        for how in {"auth_token": TOKEN}, {"auth_token_file": file}, \
                {"auth_token_file": str(file)}:
            fake = self.knowing(TOKEN, renew_after_ms=1)
            with Client(fake.url, **how) as client:
                with Lock("a", client=client):
                    wait_until(lambda: fake.of("PUT"), "an extend")
            async with AsyncClient(fake.url, **how) as other:
                await self.acquire_async(other)
            self.assertEqual(
                {request.headers["authorization"] for request in fake.requests},
                {f"Bearer {TOKEN}"})

    def test_comes_from_the_environment(self):
        fake = self.knowing(TOKEN)
        for name, text in (("REDLOCKD_AUTH_TOKEN", TOKEN),
                           ("REDLOCKD_AUTH_TOKEN_FILE", str(self.write(TOKEN)))):
            with mock.patch.dict(os.environ, {name: text}):
                with Lock("a", urls=fake.url):
                    pass
        with mock.patch.dict(os.environ, REDLOCKD_AUTH_TOKEN="wrong"):
            with Client(fake.url, auth_token=TOKEN) as client:
                self.acquire(client)

    async def test_rotated(self):
        """The file is read again, once for a 401."""
        for is_async in False, True:
            file = self.write(TOKEN)
            fake = self.knowing(TOKEN)
            fake.on("POST", rest=knows(NEXT)).on("DELETE", rest=knows(NEXT))
            client = (AsyncClient if is_async else Client)(
                fake.url, auth_token_file=file)
            self.write(NEXT)
            if is_async:
                await self.acquire_async(client)
                await client.aclose()
            else:
                self.acquire(client)
                client.close()
            self.assertEqual([request.headers["authorization"]
                              for request in fake.requests],
                             [f"Bearer {TOKEN}"] + [f"Bearer {NEXT}"] * 2)

    def test_another_thread_has_read_the_new_one(self):
        def rotate(handler, request):
            self.write(NEXT)
            client._identity.refresh(None)
            problem(401, "unauthorized")(handler, request)
        fake = self.fake().on("POST", rotate, rest=knows(NEXT))
        with Client(fake.url, auth_token_file=self.write(TOKEN)) as client:
            self.acquire(client)
        self.assertEqual(len(fake.of("POST")), 2)

    def test_lock_outlives_a_rotation_that_takes_a_while(self):
        file = self.write(TOKEN)
        fake = self.knowing(TOKEN, renew_after_ms=20, validity_ms=9000)
        with Client(fake.url, auth_token_file=file) as client:
            with Lock("a", client=client) as lock:
                for method in "PUT", "DELETE":
                    fake.on(method, rest=knows(NEXT))
                before = len(fake.of("PUT"))
                wait_until(lambda: len(fake.of("PUT")) > before + 2, "401s")
                file.unlink()
                before = len(fake.of("PUT"))
                wait_until(lambda: len(fake.of("PUT")) > before, "one more")
                self.write(NEXT)
                until = lock._held.grant.until
                wait_until(lambda: lock._held.grant.until > until, "extended")

    def test_bad_files_are_told(self):
        for text, reason in (("", "empty"), ("\n", "empty"),
                             (f"{TOKEN}\n\n", "more than one line"),
                             (f"{TOKEN} ", "ASCII"), (f"{TOKEN}é", "ASCII"),
                             (f"{TOKEN}\0", "ASCII"), ("x" * 4097, "4096")):
            file = self.write(text)
            with self.assertRaisesRegex(ValueError, reason) as caught:
                Client(auth_token_file=file)
            self.assertIn(str(file), str(caught.exception))
            self.assertNotIn(TOKEN, str(caught.exception))
        with self.assertRaises(FileNotFoundError):
            Client(auth_token_file=self.folder / "none")
        with self.assertRaisesRegex(ValueError, "either"):
            Client(auth_token=TOKEN, auth_token_file=self.write(TOKEN))
        with self.assertRaisesRegex(ValueError, "more than one line"):
            Client(auth_token=f"{TOKEN}\r\nX-Lock-Token: 1")

    def test_is_not_told(self):
        fake = self.knowing(NEXT)
        with self.assertLogs(level=logging.DEBUG) as logs:
            logging.getLogger("redlockd").setLevel(logging.DEBUG)
            with Client(fake.url, auth_token=TOKEN) as client:
                with self.assertRaises(Unauthorized) as caught:
                    self.acquire(client)
            with Client("http://127.0.0.1:1", auth_token=TOKEN) as client:
                with self.assertRaises(Unavailable) as silent:
                    self.acquire(client, wait=0)
            texts = [repr(silent.exception)]
            texts += [repr(client), str(vars(client)), repr(caught.exception)]
        for text in [*texts, *logs.output]:
            self.assertNotIn(TOKEN, text)


class Tls(Case):
    def serving(self, name="server", client_ca=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificates[f"{name}.pem"],
                                self.certificates[f"{name}.key"])
        if client_ca:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.certificates[client_ca])
        return self.fake(tls=context)

    def mine(self, name="client"):
        return {"cert_file": self.certificates[f"{name}.pem"],
                "key_file": self.certificates[f"{name}.key"]}

    async def test_bad_certificates_are_told_at_once(self):
        ca = self.certificates["ca.pem"]
        for name, how in (("expired", {"ca_file": ca}), ("server", {}),
                          ("elsewhere", {"ca_file": ca}),
                          ("foreign", {"ca_file": ca})):
            with self.subTest(name):
                fake = self.serving(name)
                with Client(fake.url, **how) as client:
                    with self.assertRaisesRegex(Untrusted, "(?i)certificate"):
                        self.acquire(client)
                    with self.assertRaises(Untrusted):
                        list(client.locks())
                async with AsyncClient(fake.url, **how) as other:
                    with self.assertRaises(Untrusted):
                        await self.acquire_async(other)
                self.assertEqual(fake.requests, [])

    async def test_a_context_of_the_callers_is_used(self):
        fake = self.serving(client_ca="ca.pem")
        context = ssl.create_default_context(cafile=self.certificates["ca.pem"])
        context.load_cert_chain(*self.mine().values())
        with Client(fake.url, ssl_context=context) as client:
            self.acquire(client)
        async with AsyncClient(fake.url, ssl_context=context) as other:
            await self.acquire_async(other)

    def test_hung_handshake_costs_no_lock(self):
        """At first, and while it is held."""
        hung = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(hung.close)
        good = self.fake(renew_after_ms=20, validity_ms=4000)
        urls = [f"https://127.0.0.1:{hung.getsockname()[1]}", good.url]
        with Client(urls, timeout=1) as client:
            with Lock("a", client=client) as lock:
                client._replicas._marks.clear()
                good.on("PUT", grant(validity_ms=90000))
                wait_until(lambda: lock.remaining > 30, "extended")

    def test_bad_files_are_told(self):
        with self.assertRaises(FileNotFoundError):
            Client(ca_file=self.folder / "none.pem")
        with self.assertRaises(ssl.SSLError):
            Client(**{**self.mine(),
                      "key_file": self.certificates["stranger.key"]})
        with self.assertRaisesRegex(ValueError, "key_file without"):
            Client(key_file=self.mine()["key_file"])
        with self.assertRaisesRegex(ValueError, "either"):
            Client(ssl_context=ssl.create_default_context(), **self.mine())


def lock_fields(name, **more):
    return {"id": name, "resource": name, "waiters": 0, **more}


class Operators(Case):
    PAGES = (
        {"locks": [lock_fields("a", owner="me", fencing_token=7,
                               remaining_ms=1500), lock_fields("b")],
         "next_cursor": "x&y"},
        {"locks": [], "next_cursor": "z"},
        {"locks": [lock_fields("b"),
                   lock_fields("c", slots=[3, 7])]},
    )

    async def test_pages_are_followed(self):
        fake = self.fake()
        pages = [page(200, json.dumps(one))
                 for one in self.PAGES]
        fake.on("GET", *pages, *pages)
        with Client(fake.url) as client:
            found = list(client.locks(prefix="a&b/ü"))
        async with AsyncClient(fake.url) as other:
            self.assertEqual([one async for one in other.locks("a&b/ü")], found)
        self.assertEqual([one.id for one in found], ["a", "b", "c"])
        first, second = found[:2]
        self.assertEqual((first.owner, first.fencing_token, first.remaining,
                          first.resources), ("me", 7, 1.5, ("a",)))
        self.assertEqual((second.owner, second.remaining, second.slots),
                         (None, None, ()))
        self.assertEqual(found[2].slots, (3, 7))
        self.assertEqual(fake.requests[0].path,
                         "/locks?page_size=1000&prefix=a%26b%2F%C3%BC")
        self.assertEqual(fake.requests[1].path.partition("&cursor=")[2],
                         "x%26y")

    async def test_force_release(self):
        for action, told in ((usual, True),
                             (problem(409, "not_owner"), False),
                             (problem(404, "lock_not_found"), False)):
            fake = self.fake().on("DELETE", rest=action)
            with Client(fake.url) as client:
                self.assertIs(client.force_release("~YS9i", 7), told)
            async with AsyncClient(fake.url) as other:
                self.assertIs(await other.force_release("~YS9i", 7), told)
                self.assertIs(await other.force_release("b", "all"), told)
            self.assertEqual(fake.requests[0].path, "/locks/~YS9i?force=7")
            self.assertEqual(fake.requests[2].path, "/locks/b?force=all")
