# SPDX-License-Identifier: MIT
"""redlockd through its HTTP API: the server's URL takes the place of nodes."""
import http.client
import json
import sys
import time

from holder import Refused, serve


IDLE_S = 60  # after a little more, the server closes a connection


class Adapter:
    def __init__(self, server):
        self.http = http.client.HTTPConnection(server)
        self.used = time.monotonic()
        self.locks = {}

    def call(self, method, path, body=None, token=None):
        headers = {"X-Lock-Token": token} if token else {}
        if body:
            headers["Content-Type"] = "application/json"
        if time.monotonic() - self.used > IDLE_S:
            self.http.close()  # the request opens another one
        self.used = time.monotonic()
        self.http.request(method, path, body and json.dumps(body), headers)
        response = self.http.getresponse()
        answer = json.loads(response.read())
        if response.status >= 300:
            raise Refused(f"{response.status} {answer['code']}")
        return answer

    def share(self, resource, ttl_ms, wait_ms=0):
        return self.acquire(resource, ttl_ms, wait_ms, mode="shared")

    def acquire(self, resource, ttl_ms, wait_ms=0, limit=0, mode="exclusive"):
        """Several resources have a + between them."""
        what = {"resources": resource.split("+")} if "+" in resource else \
            {"resource": resource}
        if limit:
            what["limit"] = limit
        lock = self.call("POST", "/locks",
                         {**what, "ttl_ms": ttl_ms, "wait_ms": wait_ms,
                          "mode": mode})
        self.locks[resource] = lock
        return lock["validity_ms"], lock["fencing_token"]

    def extend(self, resource, ttl_ms):
        lock = self.locks[resource]
        lock = self.call("PUT", f"/locks/{lock['id']}/extend",
                         {"ttl_ms": ttl_ms}, lock["token"])
        return lock["validity_ms"], lock["fencing_token"]

    def release(self, resource):
        lock = self.locks[resource]
        self.call("DELETE", f"/locks/{lock['id']}", token=lock["token"])


serve(Adapter(sys.argv[2]))
