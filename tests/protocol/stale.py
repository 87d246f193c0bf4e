"""A server that closes a kept connection when the second request comes: it grants a
lock, has perhaps released it, and then does not know it any more."""
from __future__ import annotations

import json
import socket
import threading

GRANT = json.dumps({"id": "a", "token": "1.x", "fencing_token": 1, "ttl_ms": 9000,
                    "elapsed_ms": 0, "validity_ms": 8900, "renew_after_ms": 3000})
ENDED = json.dumps({"status": 404, "code": "lock_not_found"})
LIMIT_S = 20


class ClosingServer:
    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(LIMIT_S)
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.seen = []  # the methods of the requests
        self.thread = threading.Thread(target=self.serve, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.thread.join(LIMIT_S)
        self.listener.close()

    def serve(self):
        for answers in ([("201 Created", GRANT), None], [("404 Not Found", ENDED)]):
            connection, _ = self.listener.accept()
            with connection:
                for answer in answers:
                    self.answer(connection, answer)

    def answer(self, connection, answer):
        request = b""
        while b"\r\n\r\n" not in request:
            request += connection.recv(65536)
        head, _, body = request.partition(b"\r\n\r\n")
        lengths = [int(line.split(b":")[1]) for line in head.lower().split(b"\r\n")
                   if line.startswith(b"content-length:")]
        while len(body) < sum(lengths):
            body += connection.recv(65536)
        self.seen.append(head.split(b" ")[0].decode())
        if answer:
            status, content = answer
            connection.sendall(
                f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(content)}\r\n\r\n{content}".encode())
