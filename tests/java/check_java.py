# SPDX-License-Identifier: MIT
"""The Java package: its transcripts, its clock, its stories over a real redlockd and
over made-up ones, many threads, a kept connection that has ended, and what its README
shows."""
from __future__ import annotations

import contextlib
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest
import xml.etree.ElementTree

from check_faults import BUSY_S, HOLDER, TRIES, TTL_MS, Case, Rival
from jobs import Job
from package import Alike, blocks, readme
from processes import end, spawn, stopped
from waiting import wait_until

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "api/clients/java"
CODE = SOURCE / "src/main/java/org/redlockd"
PACKAGE, TESTS = ROOT / "build/java/package", ROOT / "build/java/tests"
OTHERS = {"toString", "with"}  # methods whose names say nothing


def run(name, *arguments, classes=TESTS, **variables):
    return subprocess.run(
        ["java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp",
         f"{PACKAGE}:{classes}", name, *map(str, arguments)], check=False, text=True,
        capture_output=True, timeout=200, env={**os.environ, **variables})


def program(name, block):
    """Statements as a class: imports go before it."""
    lines = block.splitlines()
    imports = [line for line in lines if line.startswith("import ")]
    body = [line for line in lines if line not in imports]
    return "\n".join([*imports, f"public class {name} {{",
                      "public static void main(String[] a) throws Exception {",
                      *body, "}}", ""])


def compiled(folder, name, block):
    file = pathlib.Path(folder) / f"{name}.java"
    file.write_text(program(name, block))
    done = subprocess.run(["javac", "--release", "11", "-cp", PACKAGE, "-d", folder, file],
                          check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


class Package(Alike, unittest.TestCase):
    language = "java"

    def test_the_transcripts(self):
        done = run("org.redlockd.Transcripts", ROOT / "tests/protocol")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_operations_that_go_together(self):
        done = run("org.redlockd.Coalescing")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_the_clock(self):
        done = run("org.redlockd.ClockStory")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_project_file(self):
        names = {"": "http://maven.apache.org/POM/4.0.0"}
        pom = xml.etree.ElementTree.parse(SOURCE / "pom.xml").getroot()
        self.assertEqual(pom.find("version", names).text,
                         (ROOT / "VERSION").read_text().strip())
        self.assertEqual(pom.find("properties/maven.compiler.release", names).text, "11")
        self.assertIsNone(pom.find("dependencies", names))

    def test_names(self):
        text = readme("java")
        for file in CODE.glob("*Exception.java"):
            self.assertRegex(text, rf"\b{file.stem}\b")
        for name in ("Lock", "LockRequest", "Client"):
            methods = re.findall(r"^ +(?:@Override )?public (?!static final class|interface)"
                                 r"(?:[^=;{]*? )(\w+)\(", (CODE / f"{name}.java").read_text(),
                                 re.M)
            self.assertGreater(len(methods), 8)
            for method in set(methods) - OTHERS:
                self.assertRegex(text, rf"[`.]{method}\b", f"{name}.{method}")


class Stories(Case):
    options = "--max-ttl-ms", "60000"

    def test_they_hold(self):
        done = run("Stories", REDLOCKD_URL=",".join(self.urls))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_what_the_readme_shows(self):
        shown = blocks("java")
        self.assertGreaterEqual(len(shown), 4)
        with tempfile.TemporaryDirectory(prefix="java.") as folder:
            for number, block in enumerate(shown):
                with self.subTest(block):
                    name = f"Block{number}"
                    compiled(folder, name,
                             block.replace("http://127.0.0.1:8080", self.urls[0]))
                    done = run(name, classes=folder, REDLOCKD_URL=",".join(self.urls))
                    self.assertEqual((done.returncode, done.stderr), (0, ""))


class Crowd:
    """The process of Crowd.java, and what it printed."""

    def __init__(self, urls, *arguments):
        self.process = spawn(
            *HOLDER[:-1], "Crowd", *arguments, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True,
            env={**os.environ, "REDLOCKD_URL": ",".join(urls)})
        self.lines = []
        self.reader = Job(self.read)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            self.lines.append(line.split())

    def of(self, word):
        return [line[1:] for line in list(self.lines) if line[0] == word]

    def finish(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait(BUSY_S)
        self.reader.join(BUSY_S)


class Threads(Case):
    """64 threads of one client."""

    options = "--max-ttl-ms", "60000"
    KEPT = 16
    TRIES = max(1, TRIES // 4)  # each has as many locks as 16 of the other faults

    def crowd(self, *how, ttl_ms=TTL_MS):
        type(self).number += 1
        name = f"crowd{self.number}"
        crowd = Crowd(self.urls, name, ttl_ms, *how)
        self.addCleanup(end, crowd.process)
        return crowd, name

    def count(self):
        """How many requests the servers got, and how many operations."""
        counts = {"requests": 0, "operations": 0}
        for server in self.world.servers[:2]:
            for line in server.get("/metrics")[1].decode().splitlines():
                if re.match(r"redlockd_http_requests_accepted_total ", line):
                    counts["requests"] += int(line.split()[-1])
                if re.match(r'redlockd_http_requests_total.*call="'
                            r'(acquire|extend|release)"', line):
                    counts["operations"] += int(line.split()[-1])
        return counts

    def test_they_share_requests(self):
        before = self.count()
        crowd, _ = self.crowd(0, 64)
        wait_until(lambda: crowd.of("thousand"), "cycles", BUSY_S)
        crowd.finish()
        (cycles, lost), = crowd.of("cycles")
        requests, operations = (
            count - before[name] for name, count in self.count().items())
        self.assertEqual(crowd.of("failed"), [])
        self.assertEqual(lost, "0")
        self.assertGreaterEqual(operations, 2 * int(cycles))
        self.assertLess(5 * requests, operations)

    def holders(self, ttl_ms=TTL_MS):
        """Threads that hold locks while others send batches, and rivals for these
        locks."""
        crowd, name = self.crowd(self.KEPT, 64 - self.KEPT, ttl_ms=ttl_ms)
        wait_until(lambda: len(crowd.of("held")) == self.KEPT, "they hold", BUSY_S)
        rivals = [Rival(self.port(2), f"{name}:{number}")
                  for number in range(self.KEPT)]
        time.sleep(0.5)
        return crowd, rivals

    def ends(self, crowd, rivals):
        """No work was done after a rival had the lock."""
        for rival in rivals:
            rival.join(BUSY_S)
        crowd.finish()
        self.assertEqual(crowd.of("failed"), [])
        for number, at, *_ in crowd.of("lost"):
            self.assertLess(int(at), rivals[int(number)].since)
        for number, at in crowd.of("kept"):
            self.assertLess(int(at), rivals[int(number)].told)
        for rival in rivals:
            rival.leave()

    def test_a_server_is_paused(self):
        for _ in range(self.TRIES):
            # other programs may take most of the CPU time from so many threads
            ttl_ms = 2 * TTL_MS
            crowd, rivals = self.holders(ttl_ms)
            with stopped([self.world.servers[0].process]):
                time.sleep(1.3 * ttl_ms / 1000)
                self.assertEqual([one.since for one in rivals], [0] * self.KEPT,
                                 crowd.of("lost"))
                crowd.process.stdin.close()
                self.ends(crowd, rivals)
            self.assertEqual(len(crowd.of("kept")), self.KEPT)

    def test_all_its_servers_are_paused(self):
        for _ in range(self.TRIES):
            crowd, rivals = self.holders()
            with stopped(one.process for one in self.world.servers[:2]):
                wait_until(lambda: len(crowd.of("lost")) == self.KEPT, "lost", BUSY_S)
                for rival in rivals:
                    rival.join(BUSY_S)
            self.ends(crowd, rivals)

    def test_all_its_servers_are_killed(self):
        for _ in range(self.TRIES):
            crowd, rivals = self.holders()
            for server in self.world.servers[:2]:
                end(server.process)
            self.ends(crowd, rivals)
            self.assertEqual(len(crowd.of("lost")), self.KEPT)
            self.revive()
