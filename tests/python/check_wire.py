# SPDX-License-Identifier: MIT
"""Requests as bytes, and answers from bytes: without I/O."""
from __future__ import annotations

import os
import unittest
from unittest import mock

from redlockd._wire import (LONGEST_BODY, LONGEST_HEAD, Failure, Reader,
                            Target)

OK = b"HTTP/1.1 200 OK\r\n"


def told(reply):
    return reply.status, reply.content, reply.retry_after, reply.is_kept


class Case(unittest.TestCase):
    def read(self, *pieces, is_at_end=False):
        """The answer, and whether the reader wants more."""
        reader = Reader()
        for piece in pieces:
            if reply := reader.feed(piece):
                return reply
        return reader.end() if is_at_end else None

    def assert_fails(self, reason, *pieces, is_at_end=False):
        with self.assertRaisesRegex(Failure, reason):
            self.read(*pieces, is_at_end=is_at_end)


class Answers(Case):
    def test_whole_and_in_single_bytes(self):
        text = OK + b"Retry-After: 7 \r\ncontent-LENGTH: 2\r\n\r\n{}"
        for pieces in [text], [bytes([byte]) for byte in text]:
            self.assertEqual(told(self.read(*pieces)), (200, b"{}", "7", True))
            self.assertIsNone(self.read(*pieces[:-1]))

    def test_chunked(self):
        text = (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n"
                b"1;x=y\r\n}\r\n0\r\nTrailer: 1\r\n\r\n")
        for pieces in [text], [bytes([byte]) for byte in text]:
            self.assertEqual(told(self.read(*pieces)), (200, b"{}", "", True))
        self.assert_fails("cut short", text[:-2], is_at_end=True)
        self.assert_fails("no HTTP", text.replace(b"1;x=y", b"z"))

    def test_interim_answers_are_skipped(self):
        early = b"HTTP/1.1 103 Early Hints\r\nRetry-After: 9\r\n\r\n"
        reply = self.read(b"HTTP/1.1 100 Continue\r\n\r\n" + early,
                          early + OK + b"Content-Length: 1\r\n\r\nx")
        self.assertEqual(told(reply), (200, b"x", "", True))
        self.assert_fails("no HTTP", b"HTTP/1.1 101 Switching Protocols\r\n"
                          b"Connection: upgrade\r\nUpgrade: x\r\n\r\n")
        self.assert_fails("too long", *[early] * (LONGEST_HEAD // 40))

    def test_whether_the_connection_is_kept(self):
        for head, is_kept in (
                (b"HTTP/1.1 200 OK\r\n", True),
                (b"HTTP/1.1 200 OK\r\nConnection: Close\r\n", False),
                (b"HTTP/1.0 200 OK\r\n", False),
                (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n", True)):
            reply = self.read(head + b"Content-Length: 1\r\n\r\nx")
            self.assertEqual((reply.content, reply.is_kept), (b"x", is_kept))

    def test_a_body_that_ends_with_the_connection(self):
        for version in b"1.0", b"1.1":
            text = b"HTTP/" + version + b" 200 OK\r\n\r\n"
            self.assertIsNone(self.read(text + b"{}"))
            self.assertEqual(told(self.read(text, b"{", b"}", is_at_end=True)),
                             (200, b"{}", "", False))

    def test_answers_without_a_body(self):
        for status in 204, 304:
            reply = self.read(b"HTTP/1.1 %d X\r\n\r\n" % status)
            self.assertEqual((reply.status, reply.content), (status, b""))

    def test_cut_short(self):
        self.assert_fails("without an answer", is_at_end=True)
        for text in b"HT", OK, OK + b"Content-Length: 2\r\n\r\n{":
            self.assert_fails("cut short", text, is_at_end=True)
        interim = b"HTTP/1.1 100 Continue\r\n\r\n"
        self.assert_fails("cut short", interim, is_at_end=True)

    def test_too_long(self):
        self.assert_fails("head .* too long", OK + b"X: ",
                          *[b"x" * 1000] * (LONGEST_HEAD // 1000 + 1))
        piece = b"x" * (LONGEST_BODY // 4)
        length = b"Content-Length: %d\r\n\r\n" % (LONGEST_BODY + 4)
        self.assert_fails("answer is too long", OK + length, *[piece] * 5)
        chunk = b"%x\r\n%s\r\n" % (len(piece), piece)
        self.assert_fails("answer is too long", OK +
                          b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 5)

    def test_what_two_parties_could_read_in_two_ways(self):
        for head in (b"Content-Length: 1\r\nContent-Length: 2\r\n",
                     b"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n",
                     b"Content-Length: -1\r\n", b"Content-Length: 1x\r\n",
                     b"Content-Length : 1\r\n", b"X\r\n", b"X: \0\r\n"):
            with self.subTest(head):
                self.assert_fails("no HTTP", OK + head + b"\r\nx")
        for text in b"<html>", b"HTTP/1.1 2\r\n\r\n", b"SSH-2.0-x\r\n\r\n":
            self.assert_fails("no HTTP", text)

    def test_more_than_was_asked_for_ends_the_connection(self):
        text = OK + b"Content-Length: 1\r\n\r\nx"
        for more in text, b"y", b"HTTP/1.1 100 Continue\r\n\r\n":
            self.assertEqual(told(self.read(text + more)), (200, b"x", "", False))

    def test_one_reader_reads_many(self):
        reader = Reader()
        for number in b"123":
            reader.begin()
            text = OK + b"Content-Length: 1\r\n\r\n" + bytes([number])
            self.assertEqual(reader.feed(text).content, bytes([number]))


class Requests(Case):
    def request(self, url, authorization="", body=None):
        return Target(url).request("POST", "/locks?a=b", {"X-A": "b"},
                                   authorization, body).decode()

    def setUp(self):
        names = [name for name in os.environ if name.lower().endswith("_proxy")]
        patch = mock.patch.dict(os.environ)
        patch.start()
        self.addCleanup(patch.stop)
        for name in names:
            del os.environ[name]

    def test_its_bytes(self):
        head, _, body = self.request(
            "http://h:80/base/", body='{"resource":"\\u00fc"}').partition("\r\n\r\n")
        line, *fields = head.split("\r\n")
        self.assertEqual(line, "POST /base/locks?a=b HTTP/1.1")
        for field in ("Host: h:80", "X-A: b", "Content-Length: 21",
                      "Content-Type: application/json"):
            self.assertIn(field, fields)
        self.assertEqual(body, '{"resource":"\\u00fc"}')

    def test_the_host(self):
        for url, host, address in (
                ("http://h", "h", ("h", 80)), ("https://H", "h", ("h", 443)),
                ("http://[::1]:1", "[::1]:1", ("::1", 1))):
            self.assertIn(f"\r\nHost: {host}\r\n", self.request(url))
            self.assertEqual(Target(url).address, address)

    def test_the_users_password(self):
        url = "http://me:p%40ss@h"
        self.assertIn("\r\nAuthorization: Basic bWU6cEBzcw==\r\n",
                      self.request(url))
        text = self.request(url, "Bearer x")
        self.assertIn("\r\nAuthorization: Bearer x\r\n", text)
        self.assertNotIn("Basic", text)

    def test_urls_that_make_no_sense(self):
        for url in ("http://", "http://h:x", "http://h:70000", "http://h/?a",
                    "http://ü", "http://" + "x" * 64, "http://h/a b",
                    "http://h/\r\n", "http://a b", "http://h/ü"):
            with self.subTest(url), self.assertRaises(ValueError):
                if Target(url).request("GET", "", {}, "", None).count(b"\n") == 5:
                    raise ValueError  # urlsplit took the line break away

    def test_proxies_of_the_environment(self):
        os.environ.update(HTTP_PROXY="x", http_proxy="http://me:x@p:3128",
                          https_proxy="http://p", no_proxy="near,.in")
        text = self.request("http://h:8080/base")
        self.assertTrue(text.startswith("POST http://h:8080/base/locks?a=b "))
        self.assertIn("\r\nProxy-Authorization: Basic bWU6eA==\r\n", text)
        self.assertEqual(Target("http://h").address, ("p", 3128))
        target = Target("https://h")
        self.assertEqual((target.address, target.is_tunnel), (("p", 80), True))
        self.assertTrue(target.tunnel().startswith(
            b"CONNECT h:443 HTTP/1.1\r\nHost: h:443\r\n"))
        self.assertIn(b"POST /locks", target.request(
            "POST", "/locks", {}, "", None))
        for url in ("http://near", "http://a.in", "http://localhost",
                    "http://127.0.0.2", "http://[::1]"):
            self.assertEqual(Target(url).address, (Target(url).host, 80))
        os.environ["https_proxy"] = "socks5://p"
        with self.assertRaisesRegex(ValueError, "http://"):
            Target("https://h")
