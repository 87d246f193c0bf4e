# SPDX-License-Identifier: MIT
"""The wheel as it is installed, its types, its README."""
from __future__ import annotations

import importlib.metadata
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import check_live
import redlockd

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "api/clients/python"
TOOLS = ROOT / "build/python/venv/bin"
USER = ROOT / "build/python/user/bin/python3"
CACHE = ROOT / "build/python/mypy"


def run_tool(case, tool, *arguments):
    done = subprocess.run([TOOLS / tool, *arguments], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    case.assertEqual(done.returncode, 0, done.stdout)


class Package(unittest.TestCase):
    def test_the_wheel_is_what_is_tested(self):
        path = pathlib.Path(redlockd.__file__)
        self.assertIn("site-packages", path.parts)
        self.assertTrue((path.parent / "py.typed").exists())

    def test_version_and_licence_are_those_of_redlockd(self):
        version = importlib.metadata.version("redlockd-client")
        self.assertEqual(version, (ROOT / "VERSION").read_text().strip())
        self.assertEqual((SOURCE / "LICENSE").read_text(),
                         (ROOT / "LICENSE").read_text())

    def test_types(self):
        run_tool(self, "mypy", "--strict", "--python-executable", str(USER),
                 "--cache-dir", str(CACHE), "-p", "redlockd")

    def test_style(self):
        for how in ["check"], ["format", "--check"]:
            run_tool(self, "ruff", *how, "--no-cache", str(SOURCE))

    def test_every_public_name_is_in_the_readme(self):
        text = (SOURCE / "README.md").read_text()
        for name in redlockd.__all__:
            self.assertRegex(text, rf"\b{re.escape(name)}\b")


class Snippets(check_live.Case):
    """The Python blocks of the pages, as they are."""

    options = "--max-ttl-ms", "60000"
    PAGES = SOURCE / "README.md", ROOT / "README.md"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="snippets."))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        cls.files = []
        for page in cls.PAGES:
            for text in re.findall(r"^```python\n(.*?)^```$", page.read_text(),
                                   re.M | re.S):
                file = cls.folder / f"snippet{len(cls.files)}.py"
                # where the pages say that the server is
                file.write_text(text.replace("http://127.0.0.1:8080",
                                             cls.urls[0]))
                cls.files.append(file)

    def test_they_run(self):
        self.assertGreaterEqual(len(self.files), 5)
        environment = {**os.environ, "REDLOCKD_URL": ",".join(self.urls)}
        for file in self.files:
            with self.subTest(file.read_text()):
                done = subprocess.run([USER, file], env=environment, text=True,
                                      capture_output=True, timeout=60)
                self.assertEqual(done.stderr, "")
                self.assertEqual(done.returncode, 0)

    def test_their_types(self):
        for file in self.files:
            run_tool(self, "mypy", "--strict", "--python-executable",
                     str(USER), "--cache-dir", str(CACHE), str(file))
