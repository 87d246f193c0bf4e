# SPDX-License-Identifier: MIT
"""What stands before redlockd and asks for a token, and now and then refuses."""
import http.client
import json
import time

import services

TOKEN = "the+bearer/token=="
RETRY_MS = 1500


class Handler(services.Handler):
    def pass_on(self):
        gate, body = self.server, self.body()
        gate.moments.append(time.monotonic())
        if self.headers.get("Authorization") != f"Bearer {TOKEN}":
            gate.unknown += 1
            self.tell(401, {"status": 401, "code": "unauthorized"})
        elif len(gate.moments) == 1:
            self.tell(429, {"status": 429, "code": "rate_limited",
                            "retry_after_ms": RETRY_MS})
        else:
            link = http.client.HTTPConnection(gate.target, timeout=20)
            link.request(self.command, self.path, body, dict(self.headers))
            reply = link.getresponse()
            self.tell(reply.status, json.loads(reply.read()))
            link.close()

    do_POST = do_PUT = do_DELETE = pass_on

    def tell(self, status, fields):
        self.answer(status, json.dumps(fields, separators=(",", ":")),
                    {"Content-Type": "application/json"})


class Gate(services.Service):
    """The first request is one too many; the others have to wait."""

    def __init__(self, target):
        self.target, self.moments, self.unknown = target, [], 0
        super().__init__(Handler)

    def paused_ms(self):
        """Between the first request, which was refused, and the next one."""
        return (self.moments[1] - self.moments[0]) * 1000
