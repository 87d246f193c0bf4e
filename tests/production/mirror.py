# SPDX-License-Identifier: MIT
"""The way from machines without a network to the mirrors of Debian: a proxy that
fetches what apt asks for. It listens in the network of another process."""
from __future__ import annotations

import ctypes
import http.server
import shutil
import threading
import urllib.error
import urllib.request

CLONE_NEWNET = 0x40000000
PASSED_ON = ("If-Modified-Since", "Range", "If-Range", "Cache-Control")
PASSED_BACK = ("Content-Length", "Content-Type", "Content-Range",
               "Last-Modified")


class Fetch(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        wish = urllib.request.Request(self.path, headers={
            name: self.headers[name] for name in PASSED_ON
            if self.headers[name]})
        try:
            answer = urllib.request.urlopen(wish, timeout=60)
        except urllib.error.HTTPError as error:  # 304 is one
            answer = error
        except OSError:
            self.send_error(502)
            return
        with answer:
            self.send_response(answer.status)
            for name in PASSED_BACK:
                if answer.headers[name]:
                    self.send_header(name, answer.headers[name])
            if answer.headers["Content-Length"] is None:
                self.close_connection = True
                self.send_header("Connection", "close")
            self.end_headers()
            shutil.copyfileobj(answer, self.wfile)

    def log_message(self, format: str, *args: object) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True


def enter(network: int) -> None:
    """This thread, and no other: into the network that a descriptor shows."""
    if ctypes.CDLL(None, use_errno=True).setns(network, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def serve(pid: int, address: str, port: int) -> None:
    """In the background, until this process ends. A socket stays in the
    network in which it was made; what it fetches comes from ours."""
    with open("/proc/thread-self/ns/net", "rb") as ours, \
            open(f"/proc/{pid}/ns/net", "rb") as theirs:
        enter(theirs.fileno())
        try:
            server = Server((address, port), Fetch)
        finally:
            enter(ours.fileno())
    threading.Thread(target=server.serve_forever, daemon=True).start()
