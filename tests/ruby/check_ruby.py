# SPDX-License-Identifier: MIT
"""The Ruby package: its gem, its transcripts, its stories over a real redlockd, a
kept connection that has ended, and what its README shows."""
from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

from check_faults import Case
from odd import OddServer, answer, grant
from package import Alike, blocks, readme

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "api/clients/ruby"
NAME = "redlockd"
INTERNAL = {"caller", "forgotten", "inspect", "initialize", "talk", "with_held"}


def run(*arguments, **variables):
    return subprocess.run(["ruby", "-W", "-I", str(SOURCE / "lib"),
                           *map(str, arguments)], check=False, text=True,
                          capture_output=True, timeout=200,
                          env={**os.environ, **variables})


class Package(Alike, unittest.TestCase):
    language = "ruby"

    def test_the_transcripts(self):
        done = run(ROOT / "tests/ruby/transcripts.rb")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_the_gem(self):
        with tempfile.TemporaryDirectory(prefix="gem.") as folder:
            file = pathlib.Path(folder) / "redlockd.gem"
            done = subprocess.run(
                ["gem", "build", "redlockd.gemspec", "--output", file], cwd=SOURCE,
                check=False, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = subprocess.run(
                ["gem", "install", "--local", "--no-document", "--install-dir",
                 folder, file], check=False, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
            done = subprocess.run(
                ["ruby", "-e", 'gem ARGV[0]; require "redlockd"; '
                 'print Gem.loaded_specs[ARGV[0]].version', NAME], check=False,
                capture_output=True, text=True, env={**os.environ, "GEM_PATH": folder})
            self.assertEqual(done.stdout, (ROOT / "VERSION").read_text().strip(),
                             done.stderr)

    def test_names(self):
        text = readme("ruby")
        for error in re.findall(r"^  class (\w+)",
                                (SOURCE / "lib/redlockd/errors.rb").read_text(), re.M):
            self.assertRegex(text, rf"\b{error}\b")
        for name in ("lock", "client"):
            public, _, _ = (SOURCE / f"lib/redlockd/{name}.rb").read_text().partition(
                "    private\n")
            for method in set(re.findall(r"def (?:self\.)?(\w+\??)", public)) - INTERNAL:
                self.assertIn(f"`{method}", text.replace("client.", "`"), method)


class Stories(Case):
    options = "--max-ttl-ms", "60000"

    def test_they_hold(self):
        done = run(ROOT / "tests/ruby/tests.rb", REDLOCKD_URL=",".join(self.urls))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_what_the_readme_shows(self):
        shown = blocks("ruby")
        self.assertGreaterEqual(len(shown), 4)
        for block in shown:
            with self.subTest(block):
                done = run("-e", block.replace("http://127.0.0.1:8080", self.urls[0]),
                           REDLOCKD_URL=",".join(self.urls))
                self.assertEqual(done.returncode, 0, done.stderr)


def slow_once(slow_method):
    """A server that grants, and takes a second for the first of these requests."""
    def responds(method, number):
        if method == slow_method and number == 1:
            time.sleep(1)
        return answer(201, grant()) if method == "POST" else answer(200, {})
    return responds


class Odd(unittest.TestCase):
    """Servers that do what a real one does not, or does seldom."""

    def play(self, urls, program, timeout=2):
        began = time.monotonic()
        done = run("-e", f'require "redlockd"; client = Redlockd::Client.new('
                   f'{json.dumps(",".join(urls))}, timeout: {timeout}); {program}')
        self.assertEqual(done.stderr, "")
        self.assertLess(time.monotonic() - began, 8)
        return done.stdout

    def test_the_loss_of_another_lock_interrupts_an_acquire(self):
        with OddServer(slow_once("POST")) as server:
            told = self.play([server.url], """
                thread = Thread.new { client.lock("b").acquire }
                thread.report_on_exception = false
                sleep 0.3
                thread.raise(Redlockd::LockLost, "of a")
                begin
                  thread.join
                rescue Redlockd::LockLost => e
                  print e.message
                end""")
        self.assertEqual(told, "of a")
        self.assertEqual(server.seen, ["POST", "POST", "DELETE"])

    def test_the_loss_of_another_lock_interrupts_a_release(self):
        with OddServer(slow_once("DELETE")) as server:
            told = self.play([server.url], """
                thread = Thread.new { client.lock("b").tap(&:acquire).release }
                thread.report_on_exception = false
                sleep 0.4
                thread.raise(Redlockd::LockLost, "of a")
                begin
                  thread.join
                rescue Redlockd::LockLost => e
                  print e.message
                end""")
        self.assertEqual(told, "of a")
        self.assertEqual(server.seen, ["POST", "DELETE", "DELETE"])

    def test_the_end_of_the_program_waits_for_two_seconds_at_most(self):
        """And two more before, for what is given back."""
        began = time.monotonic()
        with OddServer(lambda *_: time.sleep(15)) as server:
            told = self.play([server.url], """
                require "timeout"
                begin
                  Timeout.timeout(0.3) { client.lock("a").acquire }
                rescue Timeout::Error
                  print "left"
                end""", timeout=20)
        self.assertEqual(told, "left")
        self.assertLess(time.monotonic() - began, 7)

    def test_a_response_that_drips(self):
        whole = answer(201, grant(owner="x" * 100))
        drops = tuple(bytes([byte]) for byte in whole)
        with OddServer(lambda *_: drops) as server:
            told = self.play([server.url], """
                begin
                  client.lock("a", wait: 0).acquire
                rescue Redlockd::Unavailable
                  print "unavailable"
                end""", 0.5)
        self.assertEqual(told, "unavailable")

    def test_a_kept_connection_ends_with_its_server(self):
        """The release was not sent, so another replica knows whether it is a loss."""
        first = OddServer(lambda method, _: answer(201, grant()))
        second = OddServer(lambda method, _: answer(
            404, {"status": 404, "code": "lock_not_found"}))

        def grants_and_leaves(*_):
            first.leave()
            return (answer(201, grant()),)
        first.responds = grants_and_leaves
        end_it = first.answer_one
        first.answer_one = lambda connection: end_it(connection) and False
        with first, second:
            told = self.play([first.url, second.url], """
                lock = client.lock("a")
                lock.acquire
                sleep 0.5
                begin
                  lock.release
                rescue Redlockd::LockLost
                  print "lost"
                end""")
        self.assertEqual(told, "lost")
        self.assertEqual(second.seen, ["DELETE"])

    def test_a_response_that_is_no_utf_8(self):
        body = json.dumps(grant(id="?")).encode().replace(b"?", b"\xff")
        with OddServer(lambda *_: answer(201, body)) as server:
            told = self.play([server.url], """
                begin
                  client.lock("a", wait: 0).acquire
                rescue Redlockd::Unavailable
                  print "unavailable"
                end""")
        self.assertEqual(told, "unavailable")

    def test_a_logger_that_raises_does_not_end_the_renewals(self):
        short = grant(ttl_ms=2000, validity_ms=1900, renew_after_ms=300)

        def responds(method, number):
            if (method, number) == ("PUT", 1):
                return answer(503, {"status": 503, "code": "no_quorum"})
            return answer(201 if method == "POST" else 200, short)
        with OddServer(responds) as server:
            told = self.play([server.url], """
                $stderr = File.open(IO::NULL, "w") # where the error is reported
                logger = Object.new
                def logger.warn(_) = raise("no space left")
                lock = Redlockd::Client.new(URL, logger: logger).lock("a")
                lock.acquire
                sleep 2.5
                print lock.owned?""".replace("URL", json.dumps(server.url)))
        self.assertEqual(told, "true")
        self.assertGreater(server.seen.count("PUT"), 2)

    def test_errors_show_no_password(self):
        told = self.play([], """
            ["http://me:pa/ss@host/?a", "me:pass@host:1", "http://me:p@ss?x@host/"].each do |url|
              Redlockd::Client.new(url)
            rescue ArgumentError => e
              puts e.message
            end""")
        self.assertEqual(told.count("\n"), 3)
        self.assertNotRegex(told, "pa/|ss|me:")
