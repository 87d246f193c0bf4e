"""The Java package: its transcripts, its clock, its stories over a real redlockd and
over made-up ones, a kept connection that has ended, and what its README
shows."""
from __future__ import annotations

import os
import pathlib
import re
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree

from check_faults import Case
from package import Alike, blocks, readme

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

    def release_at(self, url):
        with tempfile.TemporaryDirectory(prefix="java.") as folder:
            compiled(folder, "Once", f"""
import org.redlockd.Client;
import org.redlockd.Lock;
Lock lock = Client.builder().urls("{url}").build().lock("a").acquire();
lock.release();
System.out.print("released");
""")
            return run("Once", classes=folder)

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
