# SPDX-License-Identifier: MIT
"""Connections to servers that misbehave, of threads and of asyncio."""
from __future__ import annotations

import asyncio
import contextlib
import os
import pathlib
import shutil
import socket
import ssl
import tempfile
import threading
import time
import unittest
from unittest import mock

import fake
from certificates import Certificates
from fake import WithFake
from ports import free_ports
from processes import end, spawn
from raw import (GRANT, Raw, ends, ends_when_idle, hangs, resets, says, whole)
from redlockd import AsyncClient, AsyncLock, Client, Lock, Unavailable
from redlockd._clock import now
from redlockd._streams import Line
from users import kinds
from waiting import wait_until

CHUNKED = (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
           b"%x\r\n%s\r\n0\r\n\r\n" % (len(GRANT), GRANT))


def tunnel(port):
    """As a proxy does it: after its answer, all bytes go to that port."""
    def copy(source, sink):
        with contextlib.suppress(OSError):
            while piece := source.recv(65536):
                sink.sendall(piece)
            sink.shutdown(socket.SHUT_WR)

    def act(_, sock):
        with socket.create_connection(("127.0.0.1", port)) as other:
            sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=copy, args=(other, sock))
            back.start()
            copy(sock, other)
            back.join()
        return False
    return act


class Case(WithFake, unittest.TestCase):
    def raw(self, *script, **named):
        raw = Raw(*script, **named)
        self.addCleanup(raw.close)
        return raw

    def cycle(self, kind, raw):
        user = kind(raw.url)
        user.give(user.take())
        user.end()


class Answers(Case):
    def test_forms_of_a_good_answer(self):
        early = b"HTTP/1.1 102 Processing\r\n\r\n"
        for name, action, connections in (
                ("chunked", says(CHUNKED[:60], CHUNKED[60:]), 1),
                ("interim", says(early, early + whole()), 1),
                ("close", says(whole(head=b"HTTP/1.1 200 OK\r\n"
                                     b"Connection: close\r\n")), 2),
                ("until the end", says(b"HTTP/1.1 200 OK\r\n\r\n" + GRANT,
                                       then_ends=True), 2),
                ("more", says(whole() + b"HTTP/1.1 200 OK\r\n"), 2)):
            for kind in kinds(self):
                raw = self.raw(action)
                self.cycle(kind, raw)
                with self.subTest(name):
                    self.assertEqual(raw.methods(), ["POST", "DELETE"])
                    self.assertEqual(raw.connections, connections)

    def test_bad_answers_are_told_and_nothing_is_kept(self):
        long = says(b"HTTP/1.1 200 OK\r\nX: " + b"x" * 70_000)
        for action, reason in (
                (ends, "closed without an answer"),
                (resets, "reset"),
                (says(whole()[:-1], then_ends=True), "cut short"),
                (says(b"SSH-2.0-OpenSSH_9.2\r\n"), "no HTTP answer"),
                (long, "too long"), (hangs, "no answer in time")):
            for kind in kinds(self):
                raw = self.raw(rest=action)
                user = kind(raw.url, timeout=0.3)
                with self.assertRaisesRegex(Unavailable, reason):
                    user.take(wait=0)
                self.assertEqual(raw.connections, 2)
                user.end()

    def test_why_there_is_no_connection(self):
        port, = free_ports(1)
        for kind in kinds(self):
            user = kind(f"http://127.0.0.1:{port}")
            with self.assertRaisesRegex(Unavailable, "connection refused"):
                user.take(wait=0)
            user.end()

    def test_a_byte_now_and_then_does_not_delay_the_end(self):
        for kind in kinds(self):
            server = self.fake().on("POST", rest=fake.trickle)
            user = kind(server.url, timeout=0.3)
            began = now()
            with self.assertRaisesRegex(Unavailable, "in time"):
                user.take(wait=0)
            self.assertLess(now() - began, 5)
            user.end()


class Kept(Case):
    def test_one_connection_for_many(self):
        for kind in kinds(self):
            raw = self.raw()
            user = kind(raw.url)
            for _ in range(5):
                user.give(user.take())
            self.assertEqual(raw.connections, 1)
            user.end()

    def test_one_that_ended_while_idle_is_not_used(self):
        for kind in kinds(self):
            raw = self.raw(ends_when_idle)
            user = kind(raw.url)
            lock = user.take()
            wait_until(lambda: raw.ended, "the end")
            time.sleep(0.01)  # for the event loop to see it
            user.give(lock)
            self.assertEqual(raw.methods(), ["POST", "DELETE"])
            user.end()

    def test_an_acquire_is_repeated_on_a_new_one(self):
        """The server closed it while the request was on its way."""
        for ending in ends, resets:
            for kind in kinds(self):
                raw = self.raw(says(whole()), says(whole()), ending)
                user = kind(raw.url)
                user.give(user.take())
                lock = user.take(wait=0)
                self.assertEqual(raw.methods(), ["POST", "DELETE", "POST", "POST"])
                keys = [[line for line in one.split(b"\r\n")
                         if line.startswith(b"Idempotency-Key")]
                        for one in raw.requests[2:]]
                self.assertEqual(keys[0], keys[1])
                user.give(lock)
                user.end()

    def test_only_once(self):
        for kind in kinds(self):
            raw = self.raw(says(whole()), says(whole()), rest=ends)
            user = kind(raw.url)
            user.give(user.take())
            with self.assertRaisesRegex(Unavailable, "without an answer"):
                user.take(wait=0)
            # two tries: the first of them twice
            self.assertEqual(raw.methods()[2:], ["POST"] * 3)
            user.end()

    def test_not_once_an_answer_has_begun(self):
        for kind in kinds(self):
            raw = self.raw(says(whole()), says(whole()),
                           says(b"HTTP/1.1 2", then_ends=True))
            user = kind(raw.url)
            user.give(user.take())
            failed = []
            user.client._replicas.avoid = failed.append
            user.give(user.take())
            self.assertEqual(failed, [raw.url])
            user.end()

    def test_a_release_that_may_be_done_is_not_told_as_lost(self):
        """Its second request finds the lock gone: by the first."""
        gone = b'{"code":"lock_not_found"}'
        for kind in kinds(self):
            raw = self.raw(says(whole()), ends, says(
                whole(gone, b"HTTP/1.1 404 Not Found\r\n")))
            user = kind(raw.url)
            user.give(user.take())
            self.assertEqual(raw.methods(), ["POST", "DELETE", "DELETE"])
            self.assertEqual(user.client._replicas._marks, {})
            user.end()

    def test_a_closed_client_keeps_no_connection(self):
        raw = self.raw(rest=hangs)
        client = Client(raw.url, timeout=1)
        worker = threading.Thread(
            target=lambda: self.assertRaises(Unavailable, client.get, "a"))
        worker.start()
        raw.hanging.wait(10)
        pool = client._courier()._pool
        client.close()
        worker.join()
        self.assertEqual(pool._idle._lines, {})

    def test_transports_of_any_event_loop(self):
        """Those of uvloop have the methods, but not the class."""
        loop = asyncio.new_event_loop()
        self.addCleanup(loop.close)
        transport = mock.Mock(spec=["abort", "write"])
        line = Line(loop)
        line.connection_made(transport)
        line.close()
        transport.abort.assert_called_once()

    def test_another_event_loop_has_its_own(self):
        raw = self.raw()
        client = AsyncClient(raw.url)

        async def cycle():
            async with AsyncLock("a", client=client):
                pass
        for _ in range(2):
            asyncio.run(cycle())
        self.assertEqual(raw.connections, 2)


class Overdue(Case):
    """A replica that hangs holds up those that ask it already."""

    def test_a_wait_is_not_overdue(self):
        server = self.fake().on("POST", fake.late(0.8, fake.grant()))
        with Client([server.url, "http://127.0.0.1:1"]) as client:
            marked = []
            client._replicas.avoid = marked.append
            Lock("a", wait=5, client=client).acquire()
            self.assertEqual(marked, [])
            server.on("POST", fake.late(0.8, fake.grant()))
            Lock("a", wait=0, client=client).acquire()
            self.assertEqual(marked, [server.url])

    def test_it_is_probed_and_used_again(self):
        for kind in kinds(self):
            one, two = self.raw(ends), self.raw()
            user = kind([one.url, two.url])
            user.give(user.take())
            self.assertEqual(two.methods(), ["POST", "DELETE"])
            replicas = user.client._replicas
            replicas._marks[one.url].until = 0
            user.give(user.take())  # asks the other one, and probes
            wait_until(lambda: replicas.choose() == one.url, "it works again")
            self.assertIn(b"GET /readyz ", one.requests[1])
            user.give(user.take())
            # a release may have come to it as soon as it worked again
            self.assertEqual(one.methods()[:2], ["POST", "GET"])
            self.assertEqual(one.methods()[-2:], ["POST", "DELETE"])
            user.end()


class Proxies(Case):
    """Proxies between client and server."""

    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="transport."))
        cls.addClassCleanup(shutil.rmtree, cls.folder)

    def start(self, port, *command):
        with open(self.folder / "log", "wb") as log:
            child = spawn(*command, stdout=log, stderr=log)
        self.addCleanup(end, child)
        wait_until(lambda: self.listens(port), f"{command[0]} listens")

    def listens(self, port):
        with socket.socket() as sock:
            return sock.connect_ex(("127.0.0.1", port)) == 0

    def play(self, port):
        """More cycles than a proxy keeps one connection for."""
        for kind in kinds(self):
            user = kind(f"http://127.0.0.1:{port}")
            for _ in range(7):
                user.give(user.take())
            user.end()

    def test_nginx(self):
        server = self.fake()
        port, = free_ports(1)
        (self.folder / "nginx.conf").write_text(f"""
daemon off; master_process off; pid {self.folder}/nginx.pid;
error_log stderr; events {{}}
http {{ access_log off; client_body_temp_path {self.folder}/body;
  proxy_temp_path {self.folder}/proxy; fastcgi_temp_path {self.folder}/f;
  uwsgi_temp_path {self.folder}/u; scgi_temp_path {self.folder}/s;
  keepalive_requests 3;
  server {{ listen 127.0.0.1:{port};
    location / {{ proxy_pass {server.url}; }} }} }}
""")
        self.start(port, "/usr/sbin/nginx", "-c", self.folder / "nginx.conf",
                   "-p", self.folder)
        self.play(port)
        self.assertEqual(len(server.of("DELETE")), 14)

    def test_a_tunnel_for_tls(self):
        certificates = Certificates(self.folder)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates["server.pem"],
                                certificates["server.key"])
        server = self.fake(tls=context)
        with mock.patch("redlockd._wire._is_loopback", lambda _: False):
            for kind in kinds(self):
                port = int(server.url.rpartition(":")[2])
                proxy = self.raw(tunnel(port), rest=says(
                    b"HTTP/1.1 407 Proxy Authentication Required\r\n"
                    b"Content-Length: 0\r\n\r\n"))
                url = proxy.url.replace("//", "//me:x@")
                with mock.patch.dict(os.environ, https_proxy=url, no_proxy=""):
                    user = kind(server.url, ca_file=certificates["ca.pem"])
                user.give(user.take())
                user.give(user.take())
                request, = proxy.requests
                self.assertTrue(request.startswith(
                    b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n" % port))
                self.assertIn(b"\r\nProxy-Authorization: Basic bWU6eA==", request)
                user.shut()
                with self.assertRaisesRegex(Unavailable, "proxy refuses .*407"):
                    user.take(wait=0)
                user.end()
        self.assertEqual(len(server.of("DELETE")), 4)

    def test_haproxy(self):
        server = self.fake()
        port, = free_ports(1)
        (self.folder / "haproxy.cfg").write_text(f"""
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
frontend f
  bind 127.0.0.1:{port}
  default_backend b
backend b
  server s {server.url.removeprefix('http://')}
""")
        self.start(port, "/usr/sbin/haproxy", "-db", "-f",
                   self.folder / "haproxy.cfg")
        self.play(port)
        self.assertEqual(len(server.of("DELETE")), 14)
