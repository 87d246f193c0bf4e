"""The PHP package: its transcripts, its stories over a real redlockd, a kept
connection that has ended, and what its README shows."""
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
SOURCE = ROOT / "api/clients/php"
STRICT = ("-d", "error_reporting=-1", "-d", "display_errors=stderr",
          "-d", "zend.assertions=1")


def run(*arguments, **variables):
    return subprocess.run(["php", *STRICT, *map(str, arguments)], check=False,
                          text=True, capture_output=True, timeout=200,
                          env={**os.environ, **variables})


class Package(unittest.TestCase):
    def test_the_transcripts(self):
        done = run(ROOT / "tests/php/transcripts.php")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_they_notice_broken_rules(self):
        done = subprocess.run([ROOT / "tests/protocol/broken.py", "php"],
                              check=False, stdout=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_version_licence_and_names(self):
        of = json.loads((SOURCE / "composer.json").read_text())
        self.assertEqual(of["version"], (ROOT / "VERSION").read_text().strip())
        self.assertEqual((SOURCE / "LICENSE").read_text(),
                         (ROOT / "LICENSE").read_text())
        readme = (SOURCE / "README.md").read_text()
        public = [*SOURCE.glob("src/*.php"), *SOURCE.glob("src/Exception/*.php"),
                  *SOURCE.glob("src/Symfony/*.php")]
        for file in public:
            self.assertIn(file.stem, readme)
        for name in re.findall(r"^    public function (\w+)", "".join(
                (SOURCE / f"src/{of}.php").read_text() for of in ("Lock", "Client")),
                re.M):
            if not name.startswith("__") and name not in (
                    "renew", "nextMs", "loss", "client", "talk", "caller",
                    "background", "logger"):  # which are internal
                self.assertIn(f"{name}(", readme)

    def test_all_files_parse_and_are_strict(self):
        for file in [*SOURCE.rglob("*.php"), *(ROOT / "tests/php").glob("*.php")]:
            done = run("-l", file)
            self.assertEqual(done.returncode, 0, done.stdout)
            self.assertIn("declare(strict_types=1);", file.read_text(), file)


class Stories(Case):
    options = "--max-ttl-ms", "60000"

    def test_they_hold(self):
        done = run(ROOT / "tests/php/tests.php", REDLOCKD_URL=",".join(self.urls))
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_what_the_readme_shows(self):
        blocks = re.findall(r"^```php\n(.*?)^```$",
                            (SOURCE / "README.md").read_text(), re.M | re.S)
        self.assertGreaterEqual(len(blocks), 5)
        folder = pathlib.Path(tempfile.mkdtemp(prefix="php."))
        self.addCleanup(shutil.rmtree, folder)
        before = (f"<?php declare(strict_types=1);\n"
                  f"require '{SOURCE}/autoload.php';\n"
                  "require '/usr/share/php/Psr/Log/autoload.php';\n"
                  "require '/usr/share/php/Symfony/Component/Lock/autoload.php';\n")
        for number, block in enumerate(blocks):
            file = folder / f"block{number}.php"
            file.write_text(before + block.replace("http://127.0.0.1:8080",
                                                   self.urls[0]))
            with self.subTest(block):
                done = run(file, REDLOCKD_URL=",".join(self.urls))
                self.assertEqual((done.returncode, done.stderr), (0, ""))


class Stale(unittest.TestCase):
    def test_a_release_over_a_connection_that_ended_is_no_loss(self):
        with ClosingServer() as server, \
                tempfile.NamedTemporaryFile("w", suffix=".php") as file:
            file.write(f"<?php require '{SOURCE}/autoload.php';\n"
                       f"$client = new Redlockd\\Client('{server.url}');\n"
                       "$lock = $client->lock('a'); $lock->acquire();\n"
                       "$lock->release(); echo 'released';\n")
            file.flush()
            done = run(file.name)
        self.assertEqual((done.stdout, done.stderr), ("released", ""))
        self.assertEqual(server.seen, ["POST", "DELETE", "DELETE"])
