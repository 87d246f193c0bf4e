# SPDX-License-Identifier: MIT
"""POST /orders/<id>/ship ships an order; two requests never work on the same
order at once.  web.py [PORT]"""
import http.server
import os
import sys

import httpx
from redlockd import Client, Lock, LockHeld, LockLost, Unavailable

TTL_S = float(os.environ.get("LOCK_TTL_S", 10))
STATES = ["new", "picked", "packed", "shipped"]
store = httpx.Client(base_url=os.environ.get("STORE", "http://127.0.0.1:8090"))
locks = Client()  # all threads share its connections


def ship(order: str) -> None:
    path = f"/orders/{order}"
    with Lock(f"order:{order}", ttl=TTL_S, wait=2, client=locks) as lock:
        # an earlier holder may have done some steps: read the state under the lock
        state = store.get(path).raise_for_status().text
        for state in STATES[STATES.index(state) + 1 :]:
            lock.check()  # raises LockLost
            headers = {"X-Fencing-Token": str(lock.fencing_token)}
            store.put(path, content=state, headers=headers).raise_for_status()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        _, _, order, _ = self.path.split("/")
        try:
            ship(order)
            self.answer(200, "shipped")
        except LockHeld:
            self.answer(409, "another request ships it")
        except LockLost:  # some steps may be done: the next request continues
            self.answer(503, "not finished, try again")
        except Unavailable:  # nothing was done
            self.answer(503, "no lock service, try again")
        except httpx.HTTPStatusError as error:  # 409: a later holder has written
            status = error.response.status_code
            self.answer(404 if status == 404 else 503, f"the store says {status}")

    def answer(self, status: int, text: str) -> None:
        self.send_response(status)
        if status in (409, 503):
            self.send_header("Retry-After", "1")
        self.end_headers()
        self.wfile.write(f"{text}\n".encode())


if __name__ == "__main__":
    port = int(sys.argv[1]) if len(sys.argv) > 1 else 8091
    http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()
