# SPDX-License-Identifier: MIT
"""The redlockd servers, the proxy between them and the nodes, and all of it."""
from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

from connection import Connection
from identities import ANYBODY, WIDE
from nodes import Address, Config, Node, Process
from plan import NODES, SERVERS
from ports import free_ports
from processes import descriptors, spawn
from tls import Tls

NAMES = "abcde"  # of the nodes
STRANGERS = 3    # machines that belong to no name
KINDS_OF_NODES = ("node", "other", "stranger")  # how their folders are called


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

    def __init__(self, config: Config, index: int, ports: list[int],
                 extra: list[str]) -> None:
        """ports: its own, then those by which it reaches each place."""
        super().__init__(config, f"server{index}")
        self.index, self.address = index, ("127.0.0.1", ports[0])
        self.ways, self.extra = ports[1:], extra
        self.places = list(range(NODES))  # to which the names lead
        self.names = NAMES
        self.max_ttl_ms = config.max_ttls_ms[index % SERVERS]
        self.timeout_ms = config.timeouts_ms[index % SERVERS]
        self.starts = 0

    def start(self) -> None:
        self.starts += 1
        sanitizer = ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"),
                                           "verify_asan_link_order=0")))
        self.launch(
            str(self.config.redlockd),
            "--listen", f"127.0.0.1:{self.address[1]}",
            "--nodes", ",".join(self.urls()),
            "--max-ttl-ms", str(self.max_ttl_ms),
            "--node-timeout-ms", str(self.timeout_ms),
            "--default-ttl-ms", "1000",
            "--ask", "quorum" if (self.index + self.starts) % 3 else "all",
            "--retry-delay-ms", "50", "--drain-ms", "0", *self.extra,
            *(self.config.tls.of_server() if self.config.tls else ()),
            *(self.config.identities.of_server() if self.config.identities
              else ()),
            ASAN_OPTIONS=sanitizer)

    def urls(self) -> list[str]:
        scheme = "rediss://" if self.config.tls else ""
        return [f"{name}={scheme}127.0.0.1:{self.ways[place]}"
                for name, place in zip(self.names, self.places)]

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
        return descriptors(self.child.pid)

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

    def tell(self, command: str, server: int, node: int, *rest: int) -> None:
        """The same for both machines that the node's name may lead to."""
        for place in (node, node + NODES):
            self._write(command, server, place, *rest)

    def sync(self) -> None:
        """Returns when all was done that it was told."""
        self._write("sync")
        assert self.child.stdout
        if self.child.stdout.readline() != "done\n":
            raise RuntimeError("the proxy died")

    def _write(self, *words: object) -> None:
        assert self.child.stdin
        self.child.stdin.write(" ".join(map(str, words)) + "\n")
        self.child.stdin.flush()


class Cluster:
    """Nodes and proxy, which are up, and servers, which have to be started.
    Each name has two machines, of which one is its node; the other one runs
    only while names move. And there are machines that belong to no name, and a
    server beside the others, for mistakes."""

    def __init__(self, config: Config) -> None:
        self.config = config
        count = 2 * NODES + STRANGERS
        ports = free_ports(count + SERVERS + 1)
        self.machines = [
            Node(config, place % NODES, port, KINDS_OF_NODES[place // NODES],
                 place) for place, port in enumerate(ports[:count])]
        self.nodes = self.machines[:NODES]
        self.strangers = self.machines[2 * NODES:]
        for node, other in zip(self.nodes, self.machines[NODES:2 * NODES]):
            other.clock = node.clock
        for node in self.nodes:
            node.start()
        self.proxy = Proxy(config, ports[:2 * NODES])
        text = subprocess.run([config.redlockd, "--help"], check=True,
                              capture_output=True, text=True).stdout
        self.extra = ["--first-start", "yes"] if "--first-start" in text else []
        self.servers = [Server(config, i, [port, *self.proxy.ports[i]],
                               self.extra)
                        for i, port in enumerate(ports[count:-1])]
        self.mistaken = Server(config, SERVERS, [ports[-1], *ports[:count]],
                               self.extra)
        # what clients may ask of each server
        self.max_ttls_ms = list(config.max_ttls_ms)

    def other_machine(self, name: int) -> Node:
        """Which the name does not lead to."""
        place = (self.nodes[name].place + NODES) % (2 * NODES)
        return self.machines[place]

    def visit(self, server: Server) -> Connection:
        """As a client does who may ask for everything, with this head."""
        tls = self.config.tls
        return Connection(server.address,
                          context=tls.of_client(0) if tls else None)

    def head(self) -> str:
        return (WIDE if self.config.identities else ANYBODY).head()

    def connect(self, server: int, node: Node) -> socket.socket:
        """To the node, as this server does: through the proxy."""
        port = self.proxy.ports[server][node.place]
        plain = socket.create_connection(("127.0.0.1", port), 10)
        return self.config.tls.wrap(plain) if self.config.tls else plain

    def wait_for_nodes(self, timeout_s: float = 30) -> None:
        """Until each takes commands; raises if one does not."""
        deadline = time.monotonic() + timeout_s
        for node in self.nodes:
            node.wait_until_ready(deadline - time.monotonic())

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
            [hash_of_name] = set().union(*known) - names
            for machine in (node, self.other_machine(node.index)):
                machine.name_hash = hash_of_name

    def died(self) -> list[str]:
        processes: list[Process] = [*self.nodes, *self.servers]
        return [f"{one.name} ended with {one.died()}, see {one.log}"
                for one in processes if one.died() is not None]

    def close(self) -> None:
        for one in [*self.servers, self.mistaken, *self.machines]:
            one.kill()
        self.proxy.child.kill()
        self.proxy.child.wait()
