# SPDX-License-Identifier: MIT
"""pottery: Redlock(key=…, masters=…).acquire(); extend() by the same time
again unless its public attribute auto_release_time is set before."""
import sys
import time

from holder import Refused, serve, usual_validity_ms
from pottery import Redlock
from redis import Redis

# its default waits for ever; about as long as three attempts elsewhere
PATIENCE_S = 0.6


class Adapter:
    def __init__(self, addresses, timeout_ms):
        options = {"socket_timeout": timeout_ms / 1000} if timeout_ms else {}
        self.masters = {
            Redis(host=host, port=int(port), **options)
            for host, port in (address.split(":") for address in addresses)}
        self.locks = {}

    def acquire(self, resource, ttl_ms):
        lock = Redlock(key=resource, masters=self.masters,
                       auto_release_time=ttl_ms / 1000)
        start = time.monotonic()
        if not lock.acquire(timeout=PATIENCE_S):
            raise Refused("False")
        self.locks[resource] = lock
        return usual_validity_ms(start, ttl_ms), "none"

    def extend(self, resource, ttl_ms):
        start = time.monotonic()
        self.locks[resource].auto_release_time = ttl_ms / 1000
        self.locks[resource].extend()
        return usual_validity_ms(start, ttl_ms), "none"

    def release(self, resource):
        self.locks[resource].release()


serve(Adapter(sys.argv[2:], int(sys.argv[1])))
