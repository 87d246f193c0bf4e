"""The processes: Redis nodes, redlockd servers, the proxy between them."""
from __future__ import annotations

import contextlib
import mmap
import os
import random
import shutil
import signal
import socket
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

from identities import WIDE, Identities
from plan import NODES, SERVERS
from tls import Tls

Address = tuple[str, int]
SETTING = struct.Struct("=qqq")  # struct setting of shim.c
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


def free_ports(count: int) -> list[int]:
    """Below the range from which the kernel takes those of connections: so
    that a port is still free when its process is started again."""
    ports: list[int] = []
    port = random.randrange(15000, 30000)
    while len(ports) < count:
        port = port + 1 if port < 32000 else 15000
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                ports.append(port)
            except OSError:
                pass
    return ports


def spawn(*command: str, **options) -> subprocess.Popen:
    """A child that dies with us, and that Ctrl-C does not reach. To be called
    by the main thread only: it is the death of the thread that counts."""
    return subprocess.Popen(["setpriv", "--pdeathsig", "KILL", "--", *command],
                            start_new_session=True, **options)


class Clock:
    """What a process takes for the wall clock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.write_bytes(bytes(8 + 2 * SETTING.size))
        with path.open("r+b") as file:
            self.page = mmap.mmap(file.fileno(), 0)
        self.base_ns, self.offset_ns, self.rate_ppb = 0, 0, 0

    def offset_s(self) -> float:
        since = time.time_ns() - self.base_ns
        return (self.offset_ns + since * self.rate_ppb / 1e9) / 1e9

    def set(self, offset_s: float, rate: float = 0) -> None:
        self.base_ns = time.time_ns()
        self.offset_ns, self.rate_ppb = int(offset_s * 1e9), int(rate * 1e9)
        index = 1 - self.page[0]
        SETTING.pack_into(self.page, 8 + index * SETTING.size, self.base_ns,
                          self.offset_ns, self.rate_ppb)
        self.page[0] = index  # one byte: seen as a whole


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
        environment = {**os.environ, "LD_PRELOAD": str(self.config.shim),
                       "NEMESIS_CLOCK": str(self.clock.path), **environment}
        with self.log.open("ab") as log:
            self.child = spawn(*command, stdin=subprocess.DEVNULL, stdout=log,
                               stderr=log, env=environment)

    def signal(self, number: int) -> None:
        if self.child:
            self.child.send_signal(number)

    def kill(self) -> None:
        if self.child:
            self.child.kill()
            self.child.wait()
            self.child = None

    def finish(self, timeout_s: float) -> int:
        """It was asked to end; its exit status, -9 if it would not."""
        assert self.child
        try:
            return self.child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return -9
        finally:
            self.kill()

    def died(self) -> int | None:
        """The exit status, if it ended without being told to."""
        return self.child.poll() if self.child else None


class Node(Process):
    """A Redis master."""

    def __init__(self, config: Config, index: int, port: int,
                 name: str = "node") -> None:
        super().__init__(config, f"{name}{index}")
        self.index, self.address = index, ("127.0.0.1", port)
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
            redis = Redis(self, 1)
        except OSError:
            return False
        try:
            return redis.ask("PING") == b"+PONG\r\n"
        except OSError:
            return False
        finally:
            redis.close()

    def witnesses(self) -> set[str]:
        """The nodes of whose memory it was told."""
        redis = Redis(self)
        try:
            fields = redis.ask("HKEYS", STATE).decode().split("\r\n")
        finally:
            redis.close()
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
        deadline = time.monotonic() + 10
        while not self.is_ready():
            if time.monotonic() > deadline:
                raise OSError(f"{self.name} does not start")
            time.sleep(0.02)


class Redis:
    """A connection to a node of our own, past the proxy."""

    def __init__(self, node: Node, timeout_s: float = 5) -> None:
        self.socket = socket.create_connection(node.address, timeout_s)
        if node.config.tls:
            self.socket = node.config.tls.wrap(self.socket)

    def send(self, *words: str) -> None:
        text = f"*{len(words)}\r\n" + "".join(
            f"${len(word.encode())}\r\n{word}\r\n" for word in words)
        self.socket.sendall(text.encode())

    def ask(self, *words: str) -> bytes:
        """The first piece of the reply."""
        self.send(*words)
        reply = self.socket.recv(1 << 20)
        if not reply or reply.startswith(b"-"):
            raise OSError(f"{words[0]}: {reply!r}")
        return reply

    def keys(self) -> dict[str, int]:
        """Names and remaining ms of all keys but redlockd's own."""
        script = ("local out = {} for _, key in ipairs(redis.call('KEYS', '*'))"
                  " do if not string.find(key, '^redlockd:') then out[#out + 1]"
                  " = key .. ' ' .. redis.call('PTTL', key) end end "
                  "return table.concat(out, ',')")
        text = self.ask("EVAL", script, "0").split(b"\r\n")[1].decode()
        pairs = (part.rsplit(" ", 1) for part in text.split(",") if part)
        return {key: int(left) for key, left in pairs}

    def close(self) -> None:
        self.socket.close()


def get(address: Address, path: str, timeout_s: float, tls: Tls | None,
        head: str = "") -> str:
    """What a redlockd there answers, head and body."""
    with socket.create_connection(address, timeout_s) as plain, \
            (tls.wrap(plain) if tls else plain) as connection:
        connection.sendall(f"GET {path} HTTP/1.1\r\nHost: nemesis\r\n{head}"
                           "Connection: close\r\n\r\n".encode())
        return connection.makefile().read()


def is_ready(address: Address, tls: Tls | None = None) -> bool:
    """Whether a redlockd there says that a quorum votes."""
    try:
        return get(address, "/readyz", 1, tls).startswith("HTTP/1.1 200")
    except OSError:
        return False


class Server(Process):
    """A redlockd."""

    def __init__(self, config: Config, index: int, port: int, nodes: list[int],
                 own: list[int], extra: list[str]) -> None:
        """nodes: the ports by which all servers know the nodes; own: those to
        which this one connects instead."""
        super().__init__(config, f"server{index}")
        self.index, self.address = index, ("127.0.0.1", port)
        self.nodes, self.own, self.extra = nodes, own, extra

    def start(self) -> None:
        sanitizer = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"),
                                           "verify_asan_link_order=0")))
        self.launch(
            str(self.config.redlockd),
            "--listen", f"127.0.0.1:{self.address[1]}",
            "--nodes", ",".join(self.urls()),
            "--max-ttl-ms", str(self.config.max_ttls_ms[self.index]),
            "--node-timeout-ms", str(self.config.timeouts_ms[self.index]),
            "--default-ttl-ms", "1000",
            "--retry-delay-ms", "50", "--drain-ms", "0", *self.extra,
            *(self.config.tls.of_server() if self.config.tls else ()),
            *(self.config.identities.of_server() if self.config.identities
              else ()),
            ASAN_OPTIONS=sanitizer, NEMESIS_PORTS=",".join(
                f"{a}={b}" for a, b in zip(self.nodes, self.own) if a != b))

    def urls(self) -> list[str]:
        scheme = "rediss://" if self.config.tls else ""
        return [f"{scheme}127.0.0.1:{port}" for port in self.nodes]

    def is_ready(self) -> bool:
        return is_ready(self.address, self.config.tls)

    def metrics(self) -> dict[str, int]:
        head = WIDE.head() if self.config.identities else ""
        lines = get(self.address, "/metrics", 10, self.config.tls,
                    head).splitlines()
        words = (line.rsplit(" ", 1) for line in lines
                 if line.startswith("redlockd_"))
        return {name: int(float(value)) for name, value in words}

    def listens(self) -> bool:
        try:
            socket.create_connection(self.address, 0.2).close()
            return True
        except OSError:
            return False

    def descriptors(self) -> int:
        assert self.child
        return len(os.listdir(f"/proc/{self.child.pid}/fd"))

    def sockets(self) -> list[str]:
        """What the descriptors are: targets, with ports and state of TCP."""
        assert self.child
        known = {}
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            words = line.split()
            ports = [int(word.split(":")[1], 16) for word in words[1:3]]
            known[f"socket:[{words[9]}]"] = (
                f"tcp {ports[0]}-{ports[1]} state {int(words[3], 16)} queues "
                f"{words[4]}")
        found = []
        for name in os.listdir(f"/proc/{self.child.pid}/fd"):
            with contextlib.suppress(OSError):  # it was closed meanwhile
                target = os.readlink(f"/proc/{self.child.pid}/fd/{name}")
                found.append(f"{name} {known.get(target, target)}")
        return sorted(found, key=lambda text: int(text.split()[0]))

    def stop(self) -> int:
        """Asks it to end; its exit status, -9 if it would not."""
        self.signal(signal.SIGTERM)
        return self.finish(20)


class Proxy:
    def __init__(self, config: Config, ports: list[int]) -> None:
        self.child = spawn(str(config.proxy), str(SERVERS), *map(str, ports),
                           stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                           text=True)
        lines = self.child.stdout
        assert lines
        self.ports = [[int(port) for port in lines.readline().split()]
                      for _ in range(SERVERS)]

    def tell(self, *words: object) -> None:
        assert self.child.stdin
        self.child.stdin.write(" ".join(map(str, words)) + "\n")
        self.child.stdin.flush()

    def sync(self) -> None:
        """Returns when all was done that it was told."""
        self.tell("sync")
        assert self.child.stdout
        if self.child.stdout.readline() != "done\n":
            raise RuntimeError("the proxy died")


class Cluster:
    """Nodes and proxy, which are up, and servers, which have to be started."""

    def __init__(self, config: Config) -> None:
        self.config = config
        ports = free_ports(NODES + SERVERS)
        self.nodes = [Node(config, i, port)
                      for i, port in enumerate(ports[:NODES])]
        for node in self.nodes:
            node.start()
        self.proxy = Proxy(config, ports[:NODES])
        text = subprocess.run([config.redlockd, "--help"], check=True,
                              capture_output=True, text=True).stdout
        extra = ["--first-start", "yes"] if "--first-start" in text else []
        self.servers = [Server(config, i, port, self.proxy.ports[0],
                               self.proxy.ports[i], extra)
                        for i, port in enumerate(ports[NODES:])]

    def connect(self, server: int, node: Node) -> socket.socket:
        """To the node, as this server does: through the proxy."""
        port = self.proxy.ports[server][node.index]
        plain = socket.create_connection(("127.0.0.1", port), 10)
        return self.config.tls.wrap(plain) if self.config.tls else plain

    def wait_for_nodes(self, timeout_s: float = 30) -> None:
        """Until each takes commands; raises if one does not."""
        deadline = time.monotonic() + timeout_s
        for node in self.nodes:
            while not node.is_ready():
                if time.monotonic() > deadline:
                    raise OSError(f"{node.name} takes no commands")
                time.sleep(0.05)

    def start_servers(self, timeout_s: float) -> bool:
        """Waits until each says that a quorum votes."""
        for server in self.servers:
            server.start()
        deadline = time.monotonic() + timeout_s
        while not all(server.is_ready() for server in self.servers):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True

    def learn_names(self, timeout_s: float = 10) -> None:
        """A node has witnesses of all others, and none of itself. If that does
        not come about, none has a name."""
        deadline = time.monotonic() + timeout_s
        known: list[set[str]] = []
        while not all(len(names) == NODES - 1 for names in known) or not known:
            if time.monotonic() > deadline:
                return
            time.sleep(0.1)
            known = [node.witnesses() for node in self.nodes]
        for node, names in zip(self.nodes, known):
            [node.name_hash] = set().union(*known) - names

    def died(self) -> list[str]:
        processes: list[Process] = [*self.nodes, *self.servers]
        return [f"{one.name} ended with {one.died()}, see {one.log}"
                for one in processes if one.died() is not None]

    def close(self) -> None:
        for one in [*self.servers, *self.nodes]:
            one.kill()
        self.proxy.child.kill()
        self.proxy.child.wait()
