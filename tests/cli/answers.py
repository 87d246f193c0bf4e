"""A service that answers with JSON that a test has chosen."""
from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Answers

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        text = json.dumps(self.server.choose(self, body)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_PUT = do_POST = do_DELETE = answer

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            pass  # the client has left

    def log_message(self, format: str, *words: object) -> None:
        pass


class Answers(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, choose: Callable[[Handler, bytes], Any]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.choose = choose
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()
