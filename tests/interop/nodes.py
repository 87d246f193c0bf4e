# SPDX-License-Identifier: MIT
"""Redis masters on loopback that can be paused, killed, emptied, and whose
clocks can be stepped; each dies with this script."""
import contextlib
import os
import pathlib
import shutil
import signal
import socket

from clocks import Clock
from ports import free_ports
from processes import end, spawn
from waiting import wait_until

HOST = "127.0.0.1"


class NodeError(Exception):
    """The node answered with an error."""


def command_bytes(words):
    parts = [word if isinstance(word, bytes) else str(word).encode()
             for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(
        b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)


def read_reply(stream):
    line = stream.readline()
    if not line.endswith(b"\r\n"):
        raise ConnectionError("the node hung up")
    kind, text = line[:1], line[1:-2].decode()
    if kind == b"-":
        raise NodeError(text)
    if kind == b":":
        return int(text)
    if kind == b"$":
        if text == "-1":
            return None
        return stream.read(int(text) + 2)[:-2].decode(errors="replace")
    if kind == b"*":
        # -1: of a transaction that was not carried out
        return None if text == "-1" else \
            [read_reply(stream) for _ in range(int(text))]
    return text


class Node:
    """One redis-server; its port and directory outlive its process."""

    def __init__(self, folder, options):
        [self.port] = free_ports(1)
        self.address = f"{HOST}:{self.port}"
        self.folder = pathlib.Path(folder) / str(self.port)
        self.folder.mkdir()
        self.clock = Clock(self.folder / "clock")
        self.options = options
        self.process = None

    def start(self, **options):
        """Options are kept for later starts; those with None are dropped."""
        self.options = {**self.options, **options}
        command = ["redis-server", "--bind", HOST, "--port", str(self.port),
                   "--dir", str(self.folder)]
        for name, value in self.options.items():
            if value is not None:
                command += [f"--{name.replace('_', '-')}", str(value)]
        with open(self.folder / "log", "ab") as log:
            self.process = spawn(*command, stdout=log, stderr=log,
                                 env=self.clock.environment())
        wait_until(self.is_up, f"redis-server on {self.port} starts", 10)

    def is_up(self):
        if self.process.poll() is not None:
            raise RuntimeError((self.folder / "log").read_text()[-500:])
        try:
            return self.do("PING") == "PONG"
        except (OSError, NodeError):
            return False

    @contextlib.contextmanager
    def connected(self):
        """What asks the node over one connection."""
        with socket.create_connection((HOST, self.port), timeout=5) as link, \
                link.makefile("rb") as stream:
            def ask(*words):
                link.sendall(command_bytes(words))
                return read_reply(stream)
            yield ask

    def do(self, *words):
        with self.connected() as ask:
            return ask(*words)

    def get(self, key):
        return self.do("GET", key)

    def kill(self):
        end(self.process)

    def forget(self):
        """Removes what the node would read at its next start."""
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name not in ("log", "clock"):
                path.unlink()

    def restart_empty(self):
        self.kill()
        self.forget()
        self.start()

    def pause(self):
        os.kill(self.process.pid, signal.SIGSTOP)

    def resume(self):
        os.kill(self.process.pid, signal.SIGCONT)
