#!/usr/bin/env python3
"""The audit log under load, rotated by the real logrotate: with the file of the
Debian package, and with the one that docs/operations.md shows. No line is lost,
cut or doubled, and the new files are as the old ones.

rotate.py [TEST...]
"""
from __future__ import annotations

import grp
import gzip
import json
import os
import pwd
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cli")]
from secure import play  # noqa: E402
from world import MAX_TTL_MS, WAIT_S, World  # noqa: E402

from processes import spawn  # noqa: E402 in ../lib
from waiting import wait_until  # noqa: E402

LOGROTATE = "/usr/sbin/logrotate"
SIZE = 40000  # in place of a gigabyte
WORKERS = 4
ROTATIONS = 6


class Audited(World):
    def start_server(self, i: int) -> subprocess.Popen:
        os.umask(0o077)  # as the unit
        (self.folder / "audit").mkdir(exist_ok=True)
        with (self.folder / f"server{i}.log").open("ab") as log:
            return spawn(self.redlockd, "--listen",
                         f"127.0.0.1:{self.server_ports[i]}", "--nodes",
                         ",".join(f"127.0.0.1:{p}" for p in self.node_ports),
                         "--max-ttl-ms", str(MAX_TTL_MS), "--drain-ms", "0",
                         "--audit-log", str(self.folder / f"audit/{i}.log"),
                         "--first-start", "yes", stdout=log, stderr=log)


def of_package(world: Audited) -> str:
    text = (ROOT / "debian/redlockd.logrotate").read_text()
    me = f"{pwd.getpwuid(os.getuid()).pw_name} {grp.getgrgid(os.getgid()).gr_name}"
    pids = " ".join(str(server.pid) for server in world.servers)
    for pattern, there in ((r"/var/log/redlockd/", f"{world.folder}/audit/"),
                           (r"su redlockd redlockd", f"su {me}"),
                           (r"\[ ! -d .*\|\| true$", f"kill -HUP {pids}")):
        text, count = re.subn(pattern, there, text, flags=re.M)
        assert count == 1, pattern
    return text


def of_docs(world: Audited) -> str:
    text = (ROOT / "docs/operations.md").read_text()
    block, = re.findall(r"^```\n(/var/log/redlockd/audit.log \{\n.*?\n\})\n```$",
                        text, re.M | re.S)
    for there, here in (("/var/log/redlockd/audit.log",
                         f"{world.folder}/audit/0.log"),
                        ("pkill -HUP -x redlockd",
                         f"kill -HUP {world.servers[0].pid}")):
        assert block.count(there) == 1
        block = block.replace(there, here)
    return block


class Rotation:
    def __init__(self, world: Audited, text: str) -> None:
        assert text.count("maxsize 1G\n") == 1
        self.world = world
        self.file = world.folder / "rotate.conf"
        self.state = world.folder / "rotate.state"
        self.file.write_text(text.replace("maxsize 1G", f"maxsize {SIZE}") + "\n")
        self.file.chmod(0o644)

    def run(self) -> None:
        """As the timer: not forced."""
        subprocess.run([LOGROTATE, "--state", self.state, self.file], check=True,
                       capture_output=True, timeout=WAIT_S)

    def logs(self, server: int) -> list[Path]:
        return sorted((self.world.folder / "audit").glob(f"{server}.log*"))

    def clear(self) -> None:
        self.state.unlink(missing_ok=True)
        for server in range(2):
            for path in self.logs(server):
                if path.name != f"{server}.log":
                    path.unlink()


def text_of(path: Path) -> str:
    if path.suffix == ".gz":
        return gzip.decompress(path.read_bytes()).decode()
    return path.read_text()


class Worker(threading.Thread):
    """Acquires and releases, at one server."""

    def __init__(self, world: Audited, name: str, server: int) -> None:
        super().__init__()
        self.world, self.name, self.server = world, name, server
        self.count, self.is_over = 0, False
        self.broken: BaseException | None = None

    def run(self) -> None:
        import http.client
        link = http.client.HTTPConnection(
            "127.0.0.1", self.world.server_ports[self.server], timeout=10)

        def ask(method: str, path: str, body: str | None, headers: dict) -> dict:
            link.request(method, path, body, headers)
            answer = link.getresponse()
            text = answer.read()
            assert answer.status in (200, 201), text
            return json.loads(text)
        try:
            while not self.is_over:
                lock = ask("POST", "/locks",
                           json.dumps({"resource": f"{self.name}-{self.count}"}),
                           {"Content-Type": "application/json"})
                ask("DELETE", f"/locks/{lock['id']}", None,
                    {"X-Lock-Token": lock["token"]})
                self.count += 1
        except BaseException as error:  # noqa: BLE001 - told by the test
            self.broken = error


def no_line_is_lost(world: Audited, rotation: Rotation, servers: int) -> None:
    rotation.clear()
    workers = [Worker(world, f"w{time.monotonic_ns()}-{i}", i % servers)
               for i in range(WORKERS)]
    for worker in workers:
        worker.start()
    live = world.folder / "audit/0.log"
    kind = live.stat().st_mode, live.stat().st_uid, live.stat().st_gid
    for _ in range(ROTATIONS):
        before = live.stat().st_ino
        wait_until(lambda: live.stat().st_size > SIZE, "it grows", WAIT_S)
        rotation.run()
        wait_until(lambda: live.exists() and live.stat().st_ino != before,
                   "it was rotated and opened again", WAIT_S)
    for worker in workers:
        worker.is_over = True
        worker.join(WAIT_S)
        assert not worker.broken, worker.broken
    for server in range(servers):
        said: Counter[tuple[str, str]] = Counter()
        paths = rotation.logs(server)
        assert len(paths) > ROTATIONS or server, paths
        for path in paths:
            stat = path.stat()
            assert (stat.st_mode, stat.st_uid, stat.st_gid) == kind, path
            text = text_of(path)
            assert not text or text.endswith("\n"), f"{path}: its end is cut"
            for line in text.splitlines():
                told = json.loads(line)
                assert told["event"] != "lines_lost", line
                for name in told["resources"]:
                    said[told["event"], name] += 1
        for worker in workers:
            if worker.server == server:
                for i in range(worker.count):
                    for event in "grant", "release":
                        assert said[event, f"{worker.name}-{i}"] == 1, (
                            event, worker.name, i, worker.count)


def package_rotates_by_size(world: Audited) -> None:
    no_line_is_lost(world, Rotation(world, of_package(world)), 2)


def docs_rotate_by_size(world: Audited) -> None:
    no_line_is_lost(world, Rotation(world, of_docs(world)), 1)


def what_is_small_stays(world: Audited) -> None:
    rotation = Rotation(world, of_package(world))
    rotation.clear()
    for server in range(2):
        path = world.folder / f"audit/{server}.log"
        os.truncate(path, min(path.stat().st_size, SIZE // 2))
    for _ in range(2):  # the first run only notes that it knows them
        rotation.run()
    assert [len(rotation.logs(server)) for server in range(2)] == [1, 1]


TESTS: list[Callable[[Audited], None]] = [
    package_rotates_by_size, docs_rotate_by_size, what_is_small_stays,
]

if __name__ == "__main__":
    sys.exit(play(TESTS, lambda world: world, kind=Audited))
