"""The crate for Rust: its lints, its transcripts, its package, its stories over a real
redlockd, a kept connection that has ended, and what its README shows."""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from check_faults import Case
from package import Alike, blocks, readme

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "api/clients/rust"
COPY = ROOT / "build/rust/crate"
ONCE = ROOT / "build/rust/target/debug/examples/once"
LIMIT_S = 500
ASYNC = "--features", "tokio"


def cargo(*arguments, folder=COPY, **variables):
    return subprocess.run(["cargo", *arguments], cwd=folder, check=False, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=LIMIT_S, env={**os.environ, **variables})


class Crate(unittest.TestCase):
    def assert_passes(self, done):
        self.assertEqual(done.returncode, 0, done.stdout)

    def assert_tested(self, done, least):
        """That many tests passed, and no other one was there."""
        self.assert_passes(done)
        counts = re.findall(r"(\d+) passed; 0 failed; 0 ignored", done.stdout)
        self.assertGreaterEqual(sum(map(int, counts)), least, done.stdout)


class Package(Alike, Crate):
    language = "rust"

    def release_at(self, url):
        with tempfile.TemporaryDirectory() as folder:
            return subprocess.run(
                [ONCE], cwd=folder, check=False, text=True, capture_output=True,
                timeout=60, env={**os.environ, "REDLOCKD_URL": url})

    def test_the_transcripts(self):
        self.assert_tested(cargo("test", "--lib", *ASYNC), 10)

    def test_lints(self):
        self.assert_passes(cargo("fmt", "--check"))
        self.assert_passes(cargo("clippy", "--all-targets", *ASYNC, "--",
                                 "-D", "warnings"))

    def test_documentation(self):
        self.assert_passes(cargo("doc", "--no-deps", *ASYNC,
                                 RUSTDOCFLAGS="-D warnings"))

    def test_the_package(self):
        self.assert_passes(cargo("package", "--allow-dirty"))
        done = cargo("package", "--list", "--allow-dirty")
        names = set(done.stdout.split())
        self.assertLessEqual({"src/lib.rs", "README.md", "LICENSE", "Cargo.toml"}, names)
        self.assertNotIn("tests/live.rs", names)

    def test_names(self):
        text = readme("rust")
        variants = re.findall(r"^    ([A-Z]\w+)(?: \{|\(|,)",
                              (SOURCE / "src/error.rs").read_text(), re.M)
        self.assertGreater(len(variants), 8)
        methods = [name for file in ("asynchronous", "client", "lock")
                   for name in re.findall(r"^    pub (?:async )?fn (\w+)",
                                          (SOURCE / f"src/{file}.rs").read_text(), re.M)]
        self.assertGreater(len(methods), 35)
        for name in {*variants, *methods}:
            self.assertRegex(text, rf"`(Client::)?{name}\b", name)


class Stories(Case, Crate):
    options = "--max-ttl-ms", "60000"

    def test_they_hold(self):
        done = cargo("test", "--test", "live", *ASYNC, REDLOCKD_URL=",".join(self.urls))
        self.assert_tested(done, 20)

    def test_what_the_readme_shows(self):
        shown = blocks("rust")
        self.assertGreaterEqual(len(shown), 4)
        done = cargo("test", "--doc", *ASYNC, REDLOCKD_URL=",".join(self.urls))
        self.assert_tested(done, len(shown) + 1)