# SPDX-License-Identifier: MIT
"""What is tested of each package alike, beside its transcripts."""
from __future__ import annotations

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).parents[2]


def readme(language):
    return (ROOT / f"api/clients/{language}/README.md").read_text()


def blocks(language):
    """The programs that its README shows."""
    return re.findall(rf"^```{language}\n(.*?)^```$", readme(language), re.M | re.S)


class Alike:
    """Of the package in that folder of api/clients, for a test case."""

    language = ""

    def test_they_notice_broken_rules(self):
        done = subprocess.run([ROOT / "tests/protocol/broken.py", self.language],
                              check=False, stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_the_licence(self):
        licence = ROOT / f"api/clients/{self.language}/LICENSE"
        self.assertEqual(licence.read_text(), (ROOT / "LICENSE").read_text())
