# SPDX-License-Identifier: MIT
"""A process that may be killed, stopped and started again; Redis nodes."""
from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from clocks import Clock
from identities import Identities
from ports import free_ports
from processes import end, spawn
from tls import Tls
from waiting import wait_until

Address = tuple[str, int]
STATE = "redlockd:state"


@dataclass(frozen=True)
class Config:
    redlockd: Path
    proxy: Path
    shim: Path
    directory: Path
    modes: tuple[str, ...]  # persistence of each node
    max_ttls_ms: tuple[int, ...]  # of each server
    timeouts_ms: tuple[int, ...]
    tls: Tls | None = None  # of nodes and servers
    identities: Identities | None = None  # None: anybody may ask


class Process:
    """Something that may be killed, stopped and started again."""

    def __init__(self, config: Config, name: str) -> None:
        self.config, self.name = config, name
        self.directory = config.directory / name
        self.directory.mkdir(exist_ok=True)
        self.log = self.directory / "log"
        self.clock = Clock(config.directory / f"{name}.clock")
        self.child: subprocess.Popen | None = None

    def launch(self, *command: str, **environment: str) -> None:
        with self.log.open("ab") as log:
            self.child = spawn(
                *command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env=self.clock.environment(self.config.shim) | environment)

    def signal(self, number: int) -> None:
        if self.child:
            self.child.send_signal(number)

    def kill(self) -> None:
        end(self.child)
        self.child = None

    def wait(self, timeout_s: float) -> int | None:
        """It was asked to end; its exit status, None if it would not."""
        assert self.child
        try:
            return self.child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None

    def finish(self, timeout_s: float) -> int:
        """It was asked to end; its exit status, -9 if it would not."""
        status = self.wait(timeout_s)
        self.kill()
        return -9 if status is None else status

    def last_line(self) -> str:
        """Of the log: what it said when it died."""
        lines = self.log.read_text(errors="replace").splitlines() \
            if self.log.exists() else []
        return lines[-1] if lines else "it said nothing"

    def died(self) -> int | None:
        """The exit status, if it ended without being told to."""
        return self.child.poll() if self.child else None


class Node(Process):
    """A Redis master."""

    def __init__(self, config: Config, index: int, port: int,
                 name: str = "node", place: int = -1) -> None:
        """index: of its name; place: of its port in the proxy."""
        super().__init__(config, f"{name}{index}")
        self.index, self.address = index, ("127.0.0.1", port)
        self.place = index if place < 0 else place
        self.mode = config.modes[index]
        self.data = self.directory / "data"
        self.name_hash = ""  # what the other nodes know it by
        self.sizes: list[tuple[float, Path, int]] = []  # of the log, lately

    def start(self, mode: str = "") -> None:
        mode = mode or self.mode
        self.data.mkdir(exist_ok=True)
        self.launch(
            "redis-server", "--bind", "127.0.0.1", *self.ports(),
            "--dir", str(self.data), "--save", "",
            "--appendonly", "no" if mode == "none" else "yes",
            "--appendfsync", "no" if mode == "none" else mode,
            "--auto-aof-rewrite-percentage", "0",
            "--repl-diskless-sync-delay", "0", "--shutdown-timeout", "0",
            "--busy-reply-threshold", "50")

    def ports(self) -> list[str]:
        port, tls = self.address[1], self.config.tls
        return tls.of_node(port) if tls else ["--port", str(port)]

    def is_ready(self) -> bool:
        try:
            with Redis(self, 1) as redis:
                return redis.ask("PING") == b"+PONG\r\n"
        except OSError:
            return False

    def wait_until_ready(self, timeout_s: float = 10) -> None:
        """Raises if it takes no commands by then."""
        wait_until(self.is_ready, f"{self.name} takes commands", timeout_s)

    def witnesses(self) -> set[str]:
        """The nodes of whose memory it was told."""
        with Redis(self) as redis:
            fields = redis.ask("HKEYS", STATE).decode().split("\r\n")
        return {field[2:] for field in fields
                if field.startswith("w:") and not field.startswith("w:m")}

    def host_and_port(self) -> tuple[str, str]:
        return self.address[0], str(self.address[1])

    def wipe(self) -> None:
        shutil.rmtree(self.data, ignore_errors=True)

    def _log_file(self) -> Path | None:
        """The one that is written: that of the greatest number."""
        files = self.data.glob("appendonlydir/*.incr.aof")
        return max(files, key=lambda file: int(file.name.split(".")[-3]),
                   default=None)

    def note_size(self) -> None:
        """How long the append-only file was, for lose_end."""
        if self.mode != "everysec":
            return
        if file := self._log_file():
            self.sizes = [*self.sizes[-5:],
                          (time.monotonic(), file, file.stat().st_size)]

    def log_size(self) -> int:
        file = self._log_file()
        return file.stat().st_size if file else 0

    def cut_log(self, size: int) -> None:
        """It is down: what it wrote behind that is lost."""
        if file := self._log_file():
            os.truncate(file, min(size, file.stat().st_size))
        self.sizes.clear()

    def lose_end(self, is_short: bool) -> None:
        """What a power cut does to a file that is synced once a second: it loses
        all that was written since then, which may be just now."""
        file = self._log_file()
        lately = [size for at, of, size in self.sizes
                  if of == file and at > time.monotonic() - 1]
        if file and lately:
            size = lately[-1] if is_short else min(lately)
            os.truncate(file, min(size, file.stat().st_size))
        self.sizes.clear()


class Spare(Node):
    """A server of its own with another node's memory and clock, until it is
    killed; up when this returns."""

    def __init__(self, node: Node, files: Path) -> None:
        super().__init__(node.config, node.index, free_ports(1)[0], "spare")
        self.clock = node.clock
        self.wipe()
        shutil.copytree(files, self.data)
        self.start()
        self.wait_until_ready()


def reply_end(text: bytes, begin: int = 0) -> int | None:
    """Behind the first reply in the RESP2 text; None: more is to come."""
    head_end = text.find(b"\r\n", begin) + 2
    if head_end < 2:
        return None
    kind, rest = text[begin:begin + 1], text[begin + 1:head_end - 2]
    end: int | None = head_end
    if kind == b"$" and rest != b"-1":
        end = head_end + int(rest) + 2
    elif kind == b"*":
        for _ in range(int(rest)):
            if end is not None:
                end = reply_end(text, end)
    return end if end is not None and end <= len(text) else None


class Redis:
    """A connection to a node of our own, past the proxy."""

    def __init__(self, node: Node, timeout_s: float = 5) -> None:
        self.socket = socket.create_connection(node.address, timeout_s)
        if node.config.tls:
            self.socket = node.config.tls.wrap(self.socket)

    def __enter__(self) -> Redis:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, *words: str) -> None:
        text = f"*{len(words)}\r\n" + "".join(
            f"${len(word.encode())}\r\n{word}\r\n" for word in words)
        self.socket.sendall(text.encode())

    def ask(self, *words: str) -> bytes:
        self.send(*words)
        reply = b""
        while (end := reply_end(reply)) is None:
            piece = self.socket.recv(1 << 20)
            if not piece:
                raise OSError(f"{words[0]}: the reply ends after {reply!r}")
            reply += piece
        if reply.startswith(b"-"):
            raise OSError(f"{words[0]}: {reply!r}")
        return reply[:end]

    def keys(self) -> dict[str, int]:
        """Names and remaining ms of all keys but redlockd's own."""
        script = ("local out = {} for _, key in ipairs(redis.call('KEYS', '*'))"
                  " do if not string.find(key, '^redlockd:') then out[#out + 1]"
                  " = key .. ' ' .. redis.call('PTTL', key) end end "
                  "return table.concat(out, ',')")
        text = self.ask("EVAL", script, "0").split(b"\r\n")[1].decode()
        pairs = (part.rsplit(" ", 1) for part in text.split(",") if part)
        return {key: int(left) for key, left in pairs}
