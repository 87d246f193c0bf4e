# SPDX-License-Identifier: MIT
"""The PHP package: its transcripts, its stories over a real redlockd, a kept
connection that has ended, and what its README shows."""
from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import tempfile
import time
import unittest

from check_faults import Case
from odd import OddServer, answer, grant
from package import Alike, blocks, readme

ROOT = pathlib.Path(__file__).parents[2]
SOURCE = ROOT / "api/clients/php"
STRICT = ("-d", "error_reporting=-1", "-d", "display_errors=stderr",
          "-d", "zend.assertions=1")


def run(*arguments, **variables):
    return subprocess.run(["php", *STRICT, *map(str, arguments)], check=False,
                          text=True, capture_output=True, timeout=200,
                          env={**os.environ, **variables})


def play(program, **variables):
    """A program that begins as those of users do."""
    with tempfile.NamedTemporaryFile("w", suffix=".php") as file:
        file.write("<?php declare(strict_types=1);\n"
                   f"require '{SOURCE}/autoload.php';\n"
                   "require '/usr/share/php/Psr/Log/autoload.php';\n"
                   "require '/usr/share/php/Symfony/Component/Lock/autoload.php';\n"
                   + program)
        file.flush()
        return run(file.name, **variables)


class Package(Alike, unittest.TestCase):
    language = "php"

    def test_the_transcripts(self):
        done = run(ROOT / "tests/php/transcripts.php")
        self.assertEqual((done.returncode, done.stderr), (0, ""), done.stdout)

    def test_version_and_names(self):
        of = json.loads((SOURCE / "composer.json").read_text())
        self.assertEqual(of["version"], (ROOT / "VERSION").read_text().strip())
        text = readme("php")
        public = [*SOURCE.glob("src/*.php"), *SOURCE.glob("src/Exception/*.php"),
                  *SOURCE.glob("src/Symfony/*.php")]
        for file in public:
            self.assertIn(file.stem, text)
        for name in re.findall(r"^    public function (\w+)", "".join(
                (SOURCE / f"src/{of}.php").read_text() for of in ("Lock", "Client")),
                re.M):
            if not name.startswith("__") and name not in (
                    "renew", "nextMs", "loss", "client", "talk", "caller",
                    "background", "logger"):  # which are internal
                self.assertIn(f"{name}(", text)

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
        shown = blocks("php")
        self.assertGreaterEqual(len(shown), 5)
        for block in shown:
            with self.subTest(block):
                done = play(block.replace("http://127.0.0.1:8080", self.urls[0]),
                            REDLOCKD_URL=",".join(self.urls))
                self.assertEqual((done.returncode, done.stderr), (0, ""))


def slow_once(slow_method):
    """A server that grants, and takes two seconds for the first of these requests."""
    def responds(method, number):
        if method == slow_method and number == 1:
            time.sleep(2)
        return answer(200, {}) if method == "DELETE" else answer(200, grant())
    return responds


class Odd(unittest.TestCase):
    """Servers that do what a real one does not, or does seldom."""

    def play(self, urls, program):
        done = play("pcntl_async_signals(true);\n"
                    "pcntl_signal(SIGALRM, fn () => throw new"
                    " Redlockd\\Exception\\LockLost('of a'));\n"
                    f"$client = new Redlockd\\Client({json.dumps(urls)});\n"
                    + program)
        self.assertEqual(done.stderr, "", done.stdout)
        return done.stdout

    def test_the_loss_of_another_lock_interrupts_an_acquire(self):
        with OddServer(slow_once("POST")) as server:
            told = self.play([server.url], """
                $lock = $client->lock('b');
                pcntl_alarm(1);
                try { $lock->acquire(); } catch (Exception $e) { echo $e->getMessage(); }
                echo $lock->isHeld() ? ' held' : '';""")
        self.assertEqual(told, "of a")
        self.assertEqual(server.seen, ["POST", "POST", "DELETE"])

    def test_an_interrupted_acquire_of_symfony(self):
        with OddServer(slow_once("POST")) as server:
            told = self.play([server.url], """
                $store = new Redlockd\\Symfony\\RedlockdStore($client);
                pcntl_signal(SIGALRM, fn () => throw new DomainException('stop'));
                pcntl_alarm(1);
                $key = new Symfony\\Component\\Lock\\Key('b');
                try { $store->waitAndSave($key); } catch (Exception $e) { echo $e->getMessage(); }
                """)
        self.assertEqual(told, "stop")
        self.assertEqual(server.seen, ["POST", "POST", "DELETE"])

    def test_the_loss_of_another_lock_interrupts_a_release(self):
        with OddServer(slow_once("DELETE")) as server:
            told = self.play([server.url], """
                $lock = $client->lock('b');
                $lock->acquire();
                pcntl_alarm(1);
                try { $lock->release(); } catch (Exception $e) { echo $e->getMessage(); }
                """)
        self.assertEqual(told, "of a")
        self.assertEqual(server.seen, ["POST", "DELETE", "DELETE"])

    def test_the_loss_of_another_lock_interrupts_a_renewal(self):
        with OddServer(slow_once("PUT")) as server:
            told = self.play([server.url], """
                $lock = $client->lock('b');
                $lock->acquire();
                sleep(3);
                pcntl_alarm(1);
                try { $lock->check(); } catch (Exception $e) { echo $e->getMessage(); }
                $lock->check();
                echo $lock->isHeld() ? ' held' : '';""")
        self.assertEqual(told, "of a held")

    def test_a_logger_throws_in_a_renewal(self):
        def responds(method, number):
            is_bad = method == "PUT" and number == 1
            return answer(500, {}) if is_bad else answer(
                200, grant(renew_after_ms=10))
        with OddServer(responds) as server:
            told = self.play([server.url], f"""
                $logger = new class extends Psr\\Log\\AbstractLogger {{
                    public function log($level, $message, array $context = []): void
                    {{ throw new DomainException('disk full'); }} }};
                $client = new Redlockd\\Client('{server.url}', logger: $logger);
                $lock = $client->lock('b');
                $lock->acquire();
                usleep(50_000);
                try {{ $lock->check(); }} catch (DomainException $e) {{ echo $e->getMessage(); }}
                $lock->check();""")
        self.assertEqual(told, "disk full")
        self.assertEqual(server.seen, ["POST", "PUT", "PUT", "DELETE"])

    def test_an_exception_of_a_renewal_by_signal_is_not_the_last_one(self):
        def responds(method, number):
            is_bad = method == "PUT" and number == 1
            return answer(500, {}) if is_bad else answer(
                200, grant(renew_after_ms=1000))
        with OddServer(responds) as server:
            told = self.play([server.url], f"""
                $logger = new class extends Psr\\Log\\AbstractLogger {{
                    public function log($level, $message, array $context = []): void
                    {{ throw new DomainException('disk full'); }} }};
                $client = new Redlockd\\Client('{server.url}', logger: $logger);
                $lock = $client->lock('b', ttlMs: 9000, renewBySignal: true);
                $lock->acquire();
                try {{ while (true) usleep(10_000); }}
                catch (DomainException $e) {{ echo $e->getMessage(); }}
                for ($until = microtime(true) + 2; microtime(true) < $until; usleep(10_000));
                """)
        self.assertEqual(told, "disk full")
        self.assertEqual(server.seen[:3], ["POST", "PUT", "PUT"])

    def test_a_probe_goes_on_beside_renewals_by_signal(self):
        free = answer(200, {"held": False, "version": "free"})
        first = OddServer(lambda _, number: None if number == 1 else free)
        with first, OddServer(lambda *_: free) as second:
            self.play([first.url, second.url], """
                $client->background();
                $client->get('a');
                sleep(2);
                for ($i = 0; $i < 10; $i++) { $client->get('a'); usleep(50_000); }""")
        self.assertGreater(len(first.seen), 5)

    def test_no_secret_is_shown(self):
        told = self.play(["http://host"], """
            ini_set('zend.exception_ignore_args', '0');
            foreach (['http://me:s3cret/1@host/?a', 'me:s3cret@host:1'] as $url) {
                try { new Redlockd\\Client($url, authToken: 's3cret'); }
                catch (InvalidArgumentException $e) {
                    echo $e->getMessage();
                    var_dump($e->getTrace());
                }
            }
            try { new Redlockd\\Client(authToken: 's3cret token'); }
            catch (InvalidArgumentException $e) { echo $e; var_dump($e->getTrace()); }
            $client = new Redlockd\\Client('http://me:s3cret@host', authToken: 's3cret');
            $store = new Redlockd\\Symfony\\RedlockdStore($client);
            var_dump($client, $client->lock('a'), $store);""")
        self.assertIn("host", told)
        self.assertNotIn("s3cret", told)
