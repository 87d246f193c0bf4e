# SPDX-License-Identifier: MIT
"""Servers that answer as they like, for what a client makes of that."""
from __future__ import annotations

import json
import socket
import threading
import time

LIMIT_S = 20


def answer(status, body):
    """The bytes of a response; the body may be bytes already."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (f"HTTP/1.1 {status} So\r\nContent-Type: application/json\r\n"
            f"Content-Length: {len(content)}\r\n\r\n").encode() + content


def grant(**changes):
    return {"id": "a", "token": "1.x", "fencing_token": 1, "ttl_ms": 9000,
            "elapsed_ms": 0, "validity_ms": 8900, "renew_after_ms": 3000, **changes}


class Last(bytes):
    """A response after which the connection is closed, though it does not say so."""


class OddServer:
    """`responds` maps the method and number of a request to a response: bytes, or
    None, which closes the connection. A tuple of bytes is sent a piece a time, with
    0.2 s in between. The number begins with 1 for each method."""

    def __init__(self, responds):
        self.responds = responds
        self.seen = []  # the methods of the requests
        self.bodies = []
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.tls = None

    def serves_tls(self, context):
        """From the next connection on."""
        self.tls = context
        self.url = self.url.replace("http:", "https:")

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.leave()

    def leave(self):
        """It accepts no more connections."""
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self.listener.close()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=[connection],
                             daemon=True).start()

    def serve(self, connection):
        connection.settimeout(LIMIT_S)
        try:
            if self.tls:
                connection = self.tls.wrap_socket(connection, server_side=True)
            while self.answer_one(connection):
                pass
        except OSError:
            pass
        finally:
            connection.close()

    def answer_one(self, connection):
        request = b""
        while b"\r\n\r\n" not in request:
            part = connection.recv(65536)
            if not part:
                return False
            request += part
        head, _, body = request.partition(b"\r\n\r\n")
        lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                   if line.startswith(b"content-length:")]
        while len(body) < sum(lengths):
            body += connection.recv(65536)
        method = head.split(b" ")[0].decode()
        with self.lock:
            self.seen.append(method)
            self.bodies.append(body)
            number = self.seen.count(method)
        response = self.responds(method, number)
        if response is None:
            return False
        for piece in response if isinstance(response, tuple) else (response,):
            connection.sendall(piece)
            if isinstance(response, tuple):
                time.sleep(0.2)
        return not isinstance(response, Last)
