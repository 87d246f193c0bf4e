# SPDX-License-Identifier: MIT
"""What a story plays on: five nodes, two servers, one example, and a rival."""
import http.client
import json
import os
import signal
import time

from nodes import HOST
from ports import free_ports
from processes import end
from program import Program, now_ms
from waiting import wait_until
from world import REDLOCKD_CLIENT, Server, World

TTL_MS = 3000
RENEWAL_MS = TTL_MS // 3  # after a renewal comes the next

# how a Python program imports a file
IMPORT = "import runpy; example = runpy.run_path({!r}, run_name='lock')"


class Stage(World):
    def __init__(self, command):
        super().__init__(REDLOCKD_CLIENT)
        self.command = command
        self.programs = []

    def __enter__(self):
        self.start_nodes()
        for _ in range(2):
            self.start_server()
        self.settle()
        self.urls = [f"http://{one.address}" for one in self.servers]
        return self

    def __exit__(self, *details):
        for program in self.programs:
            program.leave()
        super().__exit__(*details)

    def start(self, wait_ms=5000, work_ms=4 * TTL_MS, ttl_ms=TTL_MS, urls=None,
              resource="r", command=None, **variables):
        """The example, which asks for the lock."""
        program = Program(command or self.command, urls or self.urls,
                          [resource, ttl_ms, wait_ms], work_ms, variables)
        self.programs.append(program)
        return program

    def imports(self, program=""):
        """The command for a program in Python that imports the example first."""
        tool, *_, file = self.command
        return (tool, "-c", IMPORT.format(str(file)) + program)

    def start_lonely_server(self):
        """One whose nodes are all down; the rival goes on with the others."""
        server = Server(self.folder, [f"{HOST}:{port}" for port in free_ports(5)],
                        [], "no")
        self.servers.insert(0, server)
        wait_until(lambda: server.get("/livez")[0] == 200, "it listens", 10)
        return server

    # -- the rival speaks to the last server

    def ask(self, method, path, body=None):
        link = http.client.HTTPConnection(self.servers[-1].address, timeout=10)
        try:
            link.request(method, path, body and json.dumps(body),
                         {"Content-Type": "application/json"})
            response = link.getresponse()
            return response.status, json.loads(response.read())
        finally:
            link.close()

    def rival_acquires(self, ttl_ms=4000, wait_ms=0):
        def try_it():
            status, self.grant = self.ask("POST", "/locks", {
                "resource": "r", "ttl_ms": ttl_ms, "wait_ms": wait_ms})
            return status == 201
        wait_until(try_it, "the rival gets the lock", 10)
        return self.grant

    def rival_releases(self):
        status, answer = self.ask("DELETE", "/locks/r",
                                  {"token": self.grant["token"]})
        assert status == 200, answer

    def has_waiter(self, resource):
        return any(json.loads(server.get(f"/locks/{resource}")[1]).get("waiters")
                   for server in self.servers)

    def wait_for_waiter(self):
        """The rival keeps its lock, however slowly the example starts."""
        def someone_waits():
            self.ask("PUT", "/locks/r/extend",
                     {"token": self.grant["token"], "ttl_ms": 4000})
            return self.has_waiter("r")
        wait_until(someone_waits, "the example waits", 30)

    # -- what the nodes know

    def expiry_ms(self):
        """The moment when the last node forgets the lock."""
        left = [node.do("PTTL", "r") for node in self.nodes]
        return now_ms() + max(left)

    def wait_for_renewal(self):
        """Until just after a renewal: the most is left of the lock."""
        before = self.expiry_ms()
        wait_until(lambda: self.expiry_ms() > before + RENEWAL_MS / 3,
                   "the example renews the lock", 10)

    def is_free(self):
        return self.holders("r") == 0

    def steal(self, resource="r"):
        """The lock vanishes, and another client takes it; returns when."""
        moment_ms = now_ms()
        for node in self.nodes:
            node.do("SET", resource, "another", "PX", 60000)
        return moment_ms

    # -- faults

    def kill_server(self, index):
        end(self.servers[index].process)

    def stop_server(self, index):
        os.kill(self.servers[index].process.pid, signal.SIGSTOP)

    def sleep_ms(self, span_ms):
        time.sleep(span_ms / 1000)
