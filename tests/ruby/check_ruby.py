"""The Ruby package: its gem, its transcripts, its stories over a real redlockd, a
kept connection that has ended, and what its README shows."""
from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

from check_faults import Case
from stale import ClosingServer

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "api/clients/ruby"
INTERNAL = {"caller", "forgotten", "inspect", "initialize", "talk", "with_held"}


def run(*arguments, **variables):
    return subprocess.run(["ruby", "-W", "-I", str(SOURCE / "lib"),
                           *map(str, arguments)], check=False, text=True,
                          capture_output=True, timeout=200,
                          env={**os.environ, **variables})


class Package(unittest.TestCase):
    def test_the_transcripts(self):
        done = run(ROOT / "tests/ruby/transcripts.rb")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_they_notice_broken_rules(self):
        done = subprocess.run([ROOT / "tests/protocol/broken.py", "ruby"],
                              check=False, stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

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
                ["ruby", "-e", 'gem "redlockd"; require "redlockd"; '
                 'print Gem.loaded_specs["redlockd"].version'], check=False,
                capture_output=True, text=True, env={**os.environ, "GEM_PATH": folder})
            self.assertEqual(done.stdout, (ROOT / "VERSION").read_text().strip(),
                             done.stderr)

    def test_licence_and_names(self):
        self.assertEqual((SOURCE / "LICENSE").read_text(),
                         (ROOT / "LICENSE").read_text())
        readme = (SOURCE / "README.md").read_text()
        for error in re.findall(r"^  class (\w+)",
                                (SOURCE / "lib/redlockd/errors.rb").read_text(), re.M):
            self.assertRegex(readme, rf"\b{error}\b")
        for name in ("lock", "client"):
            public, _, _ = (SOURCE / f"lib/redlockd/{name}.rb").read_text().partition(
                "    private\n")
            for method in set(re.findall(r"def (?:self\.)?(\w+\??)", public)) - INTERNAL:
                self.assertIn(f"`{method}", readme.replace("client.", "`"), method)


class Stories(Case):
    options = "--max-ttl-ms", "60000"

    def test_they_hold(self):
        done = run(ROOT / "tests/ruby/tests.rb", REDLOCKD_URL=",".join(self.urls))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_what_the_readme_shows(self):
        blocks = re.findall(r"^```ruby\n(.*?)^```$",
                            (SOURCE / "README.md").read_text(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 4)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="ruby."))
        self.addCleanup(shutil.rmtree, folder)
        for number, block in enumerate(blocks):
            file = folder / f"block{number}.rb"
            file.write_text(block.replace("http://127.0.0.1:8080", self.urls[0]))
            with self.subTest(block):
                done = run(file, REDLOCKD_URL=",".join(self.urls))
                self.assertEqual(done.returncode, 0, done.stderr)


class Stale(unittest.TestCase):
    def test_a_release_over_a_connection_that_ended_is_no_loss(self):
        with ClosingServer() as server, tempfile.NamedTemporaryFile("w") as file:
            file.write('require "redlockd"\n'
                       f'lock = Redlockd::Client.new("{server.url}").lock("a")\n'
                       'lock.acquire; lock.release; print "released"\n')
            file.flush()
            done = run(file.name)
        self.assertEqual((done.stdout, done.stderr), ("released", ""))
        self.assertEqual(server.seen, ["POST", "DELETE", "DELETE"])
