# SPDX-License-Identifier: MIT
"""redlock-py: Redlock(nodes).lock(resource, ttl); it cannot extend."""
import sys

from holder import Refused, serve
from redlock import Redlock


class Adapter:
    def __init__(self, addresses, timeout_ms):
        options = {"socket_timeout": timeout_ms / 1000} if timeout_ms else {}
        self.manager = Redlock([
            {"host": host, "port": int(port), **options}
            for host, port in (address.split(":") for address in addresses)])
        self.locks = {}

    def acquire(self, resource, ttl_ms):
        lock = self.manager.lock(resource, ttl_ms)
        if not lock:
            raise Refused("False")
        self.locks[resource] = lock
        return lock.validity, "none"

    def release(self, resource):
        self.manager.unlock(self.locks[resource])


serve(Adapter(sys.argv[2:], int(sys.argv[1])))
