"""Redis masters on loopback that can be paused, killed, emptied, and whose
clocks can be stepped; each dies with this script."""
import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import struct
import subprocess

from waiting import wait_until

HOST = "127.0.0.1"
# below what the kernel hands out to clients, which would take them in between
FIRST_PORT, LAST_PORT = 17000, 30000
given_ports = set()


class NodeError(Exception):
    """The node answered with an error."""


def free_port():
    """One that nobody listens on, and that was not given out before."""
    while True:
        port = random.randrange(FIRST_PORT, LAST_PORT)
        if port in given_ports:
            continue
        with socket.socket() as probe:
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
        given_ports.add(port)
        return port


def spawn(command, **how):
    """A child in a session of its own, killed when this script ends."""
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *command],
                            start_new_session=True, **how)


def end(process):
    """Ends a child that this script started, stopped or not."""
    if process and process.poll() is None:
        process.kill()
    if process:
        process.wait()


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


class Clock:
    """What steps a process's wall clock: see clock.c."""
    library = None  # path of the shared object

    def __init__(self, path):
        self.path = path
        self.path.write_bytes(bytes(8))

    def step(self, seconds):
        # in place: the process has the file mapped
        with open(self.path, "r+b") as file:
            file.write(struct.pack("=q", int(seconds * 1e6)))

    def environment(self):
        return {**os.environ, "LD_PRELOAD": str(self.library),
                "CLOCK_STEP": str(self.path)}


class Node:
    """One redis-server; its port and directory outlive its process."""

    def __init__(self, folder, options):
        self.port = free_port()
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
            self.process = spawn(command, stdout=log, stderr=log,
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
