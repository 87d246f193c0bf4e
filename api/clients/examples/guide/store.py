# SPDX-License-Identifier: MIT
"""The store that the programs of docs/guide.md write to: a state for each path.
It refuses the write of a client whose lock has had a later holder.

    store.py [PORT [FILE]]
"""
import contextlib
import http.server
import os
import sqlite3
import sys
import time

PORT = int(sys.argv[1]) if len(sys.argv) > 1 else 8090
FILE = sys.argv[2] if len(sys.argv) > 2 else "store.db"
STEP_S = float(os.environ.get("STEP_S", 1))  # how long a write with a token takes
SCHEMA = """
CREATE TABLE IF NOT EXISTS things (
    path TEXT PRIMARY KEY, state TEXT NOT NULL, fence INTEGER NOT NULL)
"""
# one statement: nothing happens between its comparison and its change
WRITE = """
INSERT INTO things (path, state, fence) VALUES (?, ?, ?)
ON CONFLICT (path) DO UPDATE SET state = excluded.state, fence = excluded.fence
 WHERE things.fence <= excluded.fence
"""


def run(statement, *values):
    """What it returns, and how many rows it has changed."""
    with contextlib.closing(sqlite3.connect(FILE, timeout=10)) as link, link:
        cursor = link.execute(statement, values)
        return cursor.fetchall(), cursor.rowcount


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def handle(self):
        with contextlib.suppress(ConnectionError):  # of a client that left
            super().handle()

    def do_GET(self):
        """A path's state; of a path that ends with /, all that is below it."""
        if self.path.endswith("/"):
            rows, _ = run("SELECT path, state FROM things ORDER BY path")
            return self.answer(200, "".join(
                f"{path.removeprefix(self.path)} {state}\n"
                for path, state in rows if path.startswith(self.path)))
        rows, _ = run("SELECT state FROM things WHERE path = ?", self.path)
        return self.answer(200, rows[0][0]) if rows else self.answer(404)

    def do_PUT(self):
        """A new state, with the fencing token of the lock; without one, 0."""
        state = self.rfile.read(int(self.headers["Content-Length"])).decode()
        fence = int(self.headers.get("X-Fencing-Token", 0))
        if fence:
            time.sleep(STEP_S)  # as a slow network, or much work
        _, changed = run(WRITE, self.path, state, fence)
        status = 200 if changed else 409
        print("PUT", self.path, state, fence, status, time.time_ns() // 10**6,
              flush=True)
        self.answer(status, "" if changed else "a later holder was here\n")

    def answer(self, status, text=""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_):
        pass


if __name__ == "__main__":
    run(SCHEMA)
    http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
