# SPDX-License-Identifier: MIT
"""redis-py: Redis(…).lock(name, timeout=…), on the first of the nodes."""
import sys
import time

from holder import Refused, serve, usual_validity_ms
from redis import Redis


class Adapter:
    def __init__(self, address):
        host, port = address.split(":")
        self.redis = Redis(host=host, port=int(port))
        self.locks = {}

    def acquire(self, resource, ttl_ms):
        start = time.monotonic()
        lock = self.redis.lock(resource, timeout=ttl_ms / 1000)
        if not lock.acquire(blocking=False):
            raise Refused("False")
        self.locks[resource] = lock
        return usual_validity_ms(start, ttl_ms), "none"

    def extend(self, resource, ttl_ms):
        start = time.monotonic()
        self.locks[resource].extend(ttl_ms / 1000, replace_ttl=True)
        return usual_validity_ms(start, ttl_ms), "none"

    def release(self, resource):
        self.locks[resource].release()


serve(Adapter(sys.argv[2]))
