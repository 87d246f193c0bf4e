# SPDX-License-Identifier: MIT
"""HTTP servers of tests. What one of them raises is raised when it is closed: a
test does not pass because a broken connection was all that it saw.
"""
from __future__ import annotations

import http.client
import http.server
import sys
import threading
import traceback


class Handler(http.server.BaseHTTPRequestHandler):
    """A subclass has do_GET and its like."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        pass

    def body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def answer(self, status: int, text: bytes | str,
               headers: dict[str, str] | None = None) -> None:
        text = text.encode() if isinstance(text, str) else text
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


class Service(http.server.ThreadingHTTPServer):
    """Serves from when it is made; a subclass has its own ready by then."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, handler: type[Handler], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self.broken: list[str] = []
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, args=(0.01,),
                         daemon=True).start()

    def handle_error(self, *_: object) -> None:
        """Unless the client has left, or who it is passed on to."""
        if not isinstance(sys.exc_info()[1], (OSError, http.client.HTTPException)):
            self.broken.append(traceback.format_exc())

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        assert not self.broken, self.broken[0]

    def __exit__(self, *_: object) -> None:
        self.close()
