# SPDX-License-Identifier: MIT
"""The module as a proxy serves it, its style, and its tests."""
from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import zipfile

import check_faults

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "api/clients/go"
BUILD = ROOT / "build/go"
VERSION = "v" + (ROOT / "VERSION").read_text().strip()
MODULE = "github.com/redlockd/redlockd/api/clients/go"
PROXY = BUILD / "proxy" / MODULE / "@v"
CODE = {"acquire", "answer", "client", "clock", "clock_linux", "clock_other",
        "coalesce", "doc", "errors", "extend", "hold", "identity", "keep", "lock",
        "ops", "read", "replicas", "send", "talk", "wire"}


def run(case, *command, cwd=SOURCE, **environment):
    done = subprocess.run([str(word) for word in command], cwd=cwd, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={**os.environ, **environment}, check=False)
    case.assertEqual(done.returncode, 0, done.stdout[-8000:])
    return done.stdout


class Package(unittest.TestCase):
    def test_the_zip_has_what_users_need_and_nothing_else(self):
        with zipfile.ZipFile(PROXY / f"{VERSION}.zip") as archive:
            names = set(archive.namelist())
            for name in names:
                file = SOURCE / name.rpartition("/")[2]
                self.assertEqual(archive.read(name), file.read_bytes())
        wanted = {f"{name}.go" for name in CODE}
        wanted |= {"go.mod", "README.md", "LICENSE"}
        self.assertEqual(names, {f"{MODULE}@{VERSION}/{name}"
                                 for name in wanted})

    def test_the_version_and_the_licence_are_those_of_redlockd(self):
        self.assertEqual((PROXY / "list").read_text(), f"{VERSION}\n")
        info = json.loads((PROXY / f"{VERSION}.info").read_text())
        self.assertEqual(info["Version"], VERSION)
        self.assertEqual((SOURCE / "LICENSE").read_bytes(),
                         (ROOT / "LICENSE").read_bytes())
        tested = run(self, "go", "list", "-m", MODULE, cwd=BUILD / "user")
        self.assertEqual(tested, f"{MODULE} {VERSION}\n")

    def test_it_is_made_with_the_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            run(self, ROOT / "scripts/gomod.py", folder, cwd=folder)
            again = pathlib.Path(folder) / MODULE / "@v"
            for file in PROXY.iterdir():
                self.assertEqual((again / file.name).read_bytes(),
                                 file.read_bytes())

    def test_it_requires_nothing(self):
        self.assertNotIn("require", (SOURCE / "go.mod").read_text())
        used = run(self, "go", "list", "-deps", "-f",
                   "{{if not .Standard}}{{.ImportPath}}{{end}}", ".")
        self.assertEqual(used, f"{MODULE}\n")

    def test_style(self):
        for folder in SOURCE, ROOT / "tests/go/user":
            self.assertEqual(run(self, "gofmt", "-l", folder), "")
        run(self, "go", "vet", "./...")
        run(self, "go", "vet", "-tags", "live", "./...", cwd=BUILD / "user")

    def test_it_builds_for_other_systems(self):
        """One in the gate: each has its own standard library to compile."""
        systems = ["darwin/arm64", "linux/386", "windows/amd64"]
        for one in systems[:1 if check_faults.TRIES < 20 else None]:
            system, _, machine = one.partition("/")
            run(self, "go", "build", ".", GOOS=system, GOARCH=machine,
                CGO_ENABLED="0")

    def test_the_protocol_without_io(self):
        run(self, "go", "test", "-race", "-count=1", ".")

    def test_the_transcripts_notice_broken_rules(self):
        run(self, ROOT / "tests/protocol/broken.py", "go")

    def test_servers_that_fail_by_script(self):
        run(self, BUILD / "fake.test", "-test.v", "-test.parallel=8", cwd=BUILD)

    def test_every_public_name_is_in_the_readme(self):
        text = (SOURCE / "README.md").read_text()
        names = set()
        for file in SOURCE.glob("*.go"):
            if not file.name.endswith("_test.go"):
                names |= set(re.findall(
                    r"^(?:func(?: \(\w+ \*?[A-Z]\w+\))?|type|const|\t)"
                    r" ?((?!Error\b|Is\b|Unwrap\b|Format\b|String\b)[A-Z]\w+)"
                    r"(?:\(| (?:struct|time\.Duration = |= errors))",
                    file.read_text(), re.M))
        self.assertGreater(len(names), 30)
        for name in names:
            self.assertRegex(text, rf"\b{name}\b")


class Live(check_faults.Case):
    def test_real_servers(self):
        told = run(self, BUILD / "live.test", "-test.v", cwd=BUILD,
                   REDLOCKD_URL=",".join(self.urls))
        self.assertEqual(told.count("--- PASS"), 8)
