# SPDX-License-Identifier: MIT
"""The crate for Rust: its lints, its transcripts, its package, its stories over a real
redlockd, a kept connection that has ended, and what its README shows."""
from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import unittest

from check_faults import Case
from package import Alike, blocks, readme

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "api/clients/rust"
COPY = ROOT / "build/rust/crate"
TARGET = ROOT / "build/rust/target"
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

    def test_lints(self):
        """Clippy compiles all, as run.sh says. broken.py looks at what it says of the
        unit tests."""
        self.assert_passes(cargo("fmt", "--check"))
        for what in (["build", "--examples"], ["test", "--no-run", "--test", "live"]):
            done = cargo(*what, *ASYNC)
            self.assert_passes(done)
            self.assertNotIn("warning", done.stdout)

    def test_documentation(self):
        """As `cargo doc`, which would compile all that the crate needs once more."""
        done = cargo("build", "--examples", *ASYNC, "--message-format=json")
        made = [json.loads(line) for line in done.stdout.splitlines()
                if line.startswith('{"reason":"compiler-artifact"')]
        needed = {one["target"]["name"]: one["filenames"][0] for one in made}
        externs = [f"--extern={name}={needed[name]}"
                   for name in ("libc", "openssl", "serde_json", "tokio")]
        done = subprocess.run(
            ["rustdoc", "src/lib.rs", "--edition=2021", "--crate-name=redlockd_client",
             f"-Ldependency={TARGET}/debug/deps", *externs, '--cfg=feature="tokio"',
             "-Dwarnings", f"--out-dir={TARGET}/doc"],
            cwd=COPY, check=False, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, env={**os.environ, "CARGO_PKG_VERSION": "0"})
        self.assert_passes(done)

    def test_the_package(self):
        """COPY is what run.sh has unpacked."""
        done = cargo("package", "--list", "--allow-dirty", "--quiet")
        names = set(done.stdout.split())
        self.assertLessEqual({"src/lib.rs", "README.md", "LICENSE", "Cargo.toml"}, names)
        self.assertNotIn("tests/live.rs", names)
        for name in names - {"Cargo.lock"}:
            self.assertTrue((COPY / name).exists(), name)

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