#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The audit log under load, rotated by the real logrotate: with the file of the
Debian package, and with the one that docs/reference/audit.md shows. No line is lost,
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
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/cli")]
from world import WAIT_S, World, play, tests_of  # noqa: E402

from jobs import Job  # noqa: E402 in ../lib
from stack import Client  # noqa: E402
from waiting import wait_until  # noqa: E402

LOGROTATE = "/usr/sbin/logrotate"
SIZE = 40000  # in place of a gigabyte
WORKERS = 4
ROTATIONS = 6


class Audited(World):
    def options_of(self, server: int) -> tuple[str, ...]:
        os.umask(0o077)  # as the unit
        (self.folder / "audit").mkdir(exist_ok=True)
        return "--audit-log", str(self.folder / f"audit/{server}.log")


def of_package(world: Audited) -> str:
    text = (ROOT / "debian/redlockd.logrotate").read_text()
    me = f"{pwd.getpwuid(os.getuid()).pw_name} {grp.getgrgid(os.getgid()).gr_name}"
    pids = " ".join(str(server.pid) for server in world.servers.values())
    for pattern, there in ((r"/var/log/redlockd/", f"{world.folder}/audit/"),
                           (r"su redlockd redlockd", f"su {me}"),
                           (r"\[ ! -d .*\|\| true$", f"kill -HUP {pids}")):
        text, count = re.subn(pattern, there, text, flags=re.M)
        assert count == 1, pattern
    return text


def of_docs(world: Audited) -> str:
    text = (ROOT / "docs/reference/audit.md").read_text()
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


class Worker(Job):
    """Acquires and releases, at one server."""

    def __init__(self, world: Audited, name: str, server: int) -> None:
        super().__init__(name=name)
        self.client = Client(world.server_ports[server])
        self.server, self.count, self.is_over = server, 0, False

    def work(self) -> None:
        while not self.is_over:
            self.client.send("POST", "/locks",
                             {"resource": f"{self.name}-{self.count}"})
            lock = self.client.expect(201)
            self.client.send("DELETE", f"/locks/{lock['id']}",
                             {"token": lock["token"]})
            self.client.expect(200)
            self.count += 1


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


if __name__ == "__main__":
    sys.exit(play(tests_of(globals(), "Audited"), kind=Audited))
