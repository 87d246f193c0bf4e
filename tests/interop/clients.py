# SPDX-License-Identifier: MIT
"""Clients of the libraries: each a process that is spoken to line by line."""
import os
import pathlib
import select
import subprocess
import time
from dataclasses import dataclass

from processes import end, spawn

HOLDERS = pathlib.Path(__file__).parent / "holders"


@dataclass
class Answer:
    said_yes: bool
    at: float            # when the answer was read, time.monotonic()
    elapsed_ms: int
    valid_until: float = 0  # by the client's own claim, never overstated
    fence: str = "none"
    why: str = ""

    def __str__(self):
        said = "yes" if self.said_yes else f"no ({self.why[:60]})"
        return f"{said} after {self.elapsed_ms} ms"


@dataclass(frozen=True)
class Library:
    """What the stories need to know of a library."""
    name: str
    command: tuple          # its holder
    key_prefix: str = ""    # in front of resources, on the nodes
    can_extend: bool = True
    is_redlockd: bool = False

    def key(self, resource):
        return self.key_prefix + resource


class Client:
    def __init__(self, library, arguments, timeout_ms=0):
        self.process = spawn(*library.command, timeout_ms, *arguments,
                             stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL)
        self.sent = 0.0
        self.read = b""
        self.is_busy = False  # the answer to `sent` was not read yet

    def begin(self, verb, resource, *ttl_ms):
        """Asks without waiting for the answer."""
        assert not self.is_busy
        self.is_busy = True
        self.sent = time.monotonic()
        line = " ".join(map(str, (verb, resource, *ttl_ms)))
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, limit_s):
        """The answer to what was begun; None if it does not come in time."""
        until = time.monotonic() + limit_s
        out = self.process.stdout
        while b"\n" not in self.read:
            left = until - time.monotonic()
            if left <= 0 or not select.select([out], [], [], left)[0]:
                return None
            piece = os.read(out.fileno(), 65536)
            if not piece:
                raise RuntimeError("the client's process ended")
            self.read += piece
        line, _, self.read = self.read.partition(b"\n")
        self.is_busy = False
        return self._parse(line.decode())

    def _parse(self, line):
        now = time.monotonic()
        if line.startswith("yes "):
            _, validity_ms, elapsed_ms, fence = line.split()
            span_ms = int(elapsed_ms) + int(validity_ms)
            return Answer(True, now, int(elapsed_ms),
                          self.sent + span_ms / 1000, fence)
        _, elapsed_ms, why = line.split(" ", 2)
        return Answer(False, now, int(elapsed_ms), why=why)

    def ask(self, verb, resource, *ttl_ms, limit_s=20):
        # one that is late with an answer gets time for that first
        if self.is_busy and not self.answer(limit_s):
            return None
        self.begin(verb, resource, *ttl_ms)
        return self.answer(limit_s)

    def acquire(self, resource, ttl_ms, limit_s=20):
        return self.ask("acquire", resource, ttl_ms, limit_s=limit_s)

    def extend(self, resource, ttl_ms, limit_s=20):
        return self.ask("extend", resource, ttl_ms, limit_s=limit_s)

    def release(self, resource, limit_s=20):
        return self.ask("release", resource, limit_s=limit_s)

    def leave(self):
        """As a crash would: without a word."""
        end(self.process)
        self.process.stdin.close()
        self.process.stdout.close()
