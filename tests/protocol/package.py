# SPDX-License-Identifier: MIT
"""What is tested of each package alike, beside its transcripts."""
from __future__ import annotations

import pathlib
import re
import subprocess

from odd import OddServer, answer, grant

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

    def test_a_release_over_a_connection_that_ended_is_no_loss(self):
        """The server closes the kept connection when the release comes. It may have
        carried it out: it does not know the lock any more."""
        def responds(method, number):
            if method == "POST":
                return answer(201, grant())
            return None if number == 1 else answer(
                404, {"status": 404, "code": "lock_not_found"})
        with OddServer(responds) as server:
            done = self.release_at(server.url)
        self.assertEqual((done.stdout.strip(), done.stderr), ("released", ""))
        self.assertEqual(server.seen, ["POST", "DELETE", "DELETE"])

    def release_at(self, url):
        """Runs a program that acquires a lock there, releases it, and prints
        "released"."""
        raise NotImplementedError
