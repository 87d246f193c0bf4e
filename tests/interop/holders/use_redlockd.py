"""redlockd through its HTTP API: the server's URL takes the place of nodes."""
import http.client
import json
import sys

from holder import Refused, serve


class Adapter:
    def __init__(self, server):
        self.http = http.client.HTTPConnection(server)
        self.locks = {}

    def call(self, method, path, body=None, token=None):
        headers = {"X-Lock-Token": token} if token else {}
        if body:
            headers["Content-Type"] = "application/json"
        self.http.request(method, path, body and json.dumps(body), headers)
        response = self.http.getresponse()
        answer = json.loads(response.read())
        if response.status >= 300:
            raise Refused(f"{response.status} {answer['code']}")
        return answer

    def acquire(self, resource, ttl_ms, wait_ms=0):
        """Several resources have a + between them."""
        what = {"resources": resource.split("+")} if "+" in resource else \
            {"resource": resource}
        lock = self.call("POST", "/locks",
                         {**what, "ttl_ms": ttl_ms, "wait_ms": wait_ms})
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
