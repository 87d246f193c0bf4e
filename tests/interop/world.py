# SPDX-License-Identifier: MIT
"""What a story plays in: five fresh nodes, and clients of one library."""
import http.client
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time

from clients import HOLDERS, Client, Library
from clocks import Clock
from nodes import HOST, Node
from ports import free_ports
from processes import end, spawn
from proxy import Proxy
from waiting import wait_until

# the greatest TTL of the stories; a small one makes quarantines short
MAX_TTL_MS = 4000
RAM_ONLY = {"save": "", "appendonly": "no"}
DURABLE = {"save": "", "appendonly": "yes", "appendfsync": "always"}
REDLOCKD_CLIENT = Library(
    "redlockd", (sys.executable, str(HOLDERS / "use_redlockd.py")),
    is_redlockd=True)
REDLOCKD = os.environ.get("REDLOCKD", "build/release/redlockd")


class NotPossible(Exception):
    """A story cannot be told of this library; the text says why."""


def redlockd_help():
    return subprocess.run([REDLOCKD, "--help"], check=True, text=True,
                          capture_output=True).stdout


class Server:
    """A redlockd over the given addresses."""

    def __init__(self, folder, addresses, options, first_start,
                 max_ttl_ms=MAX_TTL_MS):
        self.address = f"{HOST}:{free_ports(1)[0]}"
        self.clock = Clock(folder / f"clock{self.address}")
        self.log = folder / f"redlockd{self.address}"
        command = [REDLOCKD, "--listen", self.address, "--nodes",
                   ",".join(addresses), "--max-ttl-ms", str(max_ttl_ms),
                   "--node-timeout-ms", "50", *options]
        if "--first-start" in redlockd_help():
            command += ["--first-start", first_start]
        with open(self.log, "ab") as log:
            self.process = spawn(*command, stdout=log, stderr=log,
                                 env=self.clock.environment())

    def get(self, path):
        if self.process.poll() is not None:
            raise RuntimeError(f"redlockd ended: {self.log.read_text()[-500:]}")
        link = http.client.HTTPConnection(self.address, timeout=5)
        try:
            link.request("GET", path)
            response = link.getresponse()
            return response.status, response.read()
        except OSError:
            return 0, b"{}"
        finally:
            link.close()

    def voting(self):
        return json.loads(self.get("/nodes")[1]).get("voting", 0)

    def is_ready(self):
        return self.get("/readyz")[0] == 200


class World:
    def __init__(self, library):
        self.library = library
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="interop."))
        self.nodes, self.proxies = [], []
        self.extra = []  # what is no lock node
        self.clients, self.servers = [], []
        self.voters = 5  # how many nodes redlockd is to wait for

    @classmethod
    def ready(cls, servers, *options):
        """Five nodes that vote for so many servers with these options."""
        world = cls(REDLOCKD_CLIENT)
        try:
            world.start_nodes()
            for _ in range(servers):
                world.start_server(*options)
            world.settle()
        except BaseException:
            world.__exit__()
            raise
        return world

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.leave()
        for server in self.servers:
            end(server.process)
        for proxy in self.proxies:
            proxy.close()
        for node in self.nodes + self.extra:
            node.kill()
        shutil.rmtree(self.folder)

    # -- nodes

    def start_nodes(self, options=RAM_ONLY, proxied=False, count=5):
        self.nodes = [Node(self.folder, options) for _ in range(count)]
        for node in self.nodes:
            node.start()
        if proxied:
            self.proxies = [Proxy(node) for node in self.nodes]
        return self.nodes

    def extra_node(self):
        """Another Redis, that no client knows of; a master at once."""
        node = Node(self.folder, {"save": "", "repl_diskless_sync_delay": 0})
        self.extra.append(node)
        node.start()
        return node

    def addresses(self):
        return [one.address for one in self.proxies or self.nodes]

    def holders(self, resource):
        """How many nodes that can be asked have the lock's key."""
        return sum(node.get(self.library.key(resource)) is not None
                   for node in self.nodes)

    def occupy(self, resource, nodes, ttl_ms=60000):
        """As clients that race for it: on each node another one."""
        for number, node in enumerate(nodes):
            node.do("SET", self.library.key(resource), f"other-{number}",
                    "NX", "PX", ttl_ms)

    def vacate(self, resource, nodes):
        for node in nodes:
            node.do("DEL", self.library.key(resource))

    # -- clients

    def start_server(self, *options, first_start="yes", **limits):
        """The nodes are new and empty, and redlockd is told so: else nodes
        without persistence would have to wait before they vote."""
        server = Server(self.folder, self.addresses(), options, first_start,
                        **limits)
        self.servers.append(server)
        return server

    def client(self, timeout_ms=0, warm=True, first_start="yes"):
        """A new one; warm: with connections that have been used once. Those of
        redlockd have a server each, as replicas."""
        where = self.addresses()
        if self.library.is_redlockd:
            server = self.start_server(first_start=first_start)
            where = [server.address]
            if warm:
                self.settle()
        return self.client_of(where, timeout_ms, warm)

    def client_of(self, where, timeout_ms=0, warm=True, library=None):
        client = Client(library or self.library, where, timeout_ms)
        self.clients.append(client)
        resource = f"warm{len(self.clients)}"
        if warm and client.acquire(resource, 1000):
            client.release(resource)
        return client

    def redlockd_client(self, server):
        """Beside those of another library."""
        return self.client_of([server.address], library=REDLOCKD_CLIENT)

    def next_epoch(self):
        return ["--config-epoch", "2"] if "--config-epoch" in redlockd_help() \
            else []

    def settle(self, limit_s=150):
        """Until redlockd lets the nodes vote; libraries know no such thing."""
        for server in self.servers:
            wait_until(lambda one=server: one.is_ready() and
                       one.voting() >= self.voters,
                       f"{self.voters} nodes vote at {server.address}", limit_s)


def must(answer, what):
    """A step that the story needs and that is no finding in itself."""
    if answer is None:
        raise NotPossible(f"{what}: no answer")
    if not answer.said_yes:
        raise NotPossible(f"{what}: {answer}")
    return answer


def try_until(step, limit_s):
    """Asks again, as clients do, until yes or the time is over."""
    until = time.monotonic() + limit_s
    while True:
        answer = step()
        if answer is None or answer.said_yes or time.monotonic() > until:
            return answer
        time.sleep(0.02)


def overlap_ms(first, second):
    """For how long both were told that they hold; first is not released."""
    if not (second and second.said_yes):
        return 0
    return int((first.valid_until - second.at) * 1000)
