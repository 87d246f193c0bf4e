# SPDX-License-Identifier: MIT
"""A server of bytes: what a real one never sends, as the test's script says."""
from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
from typing import Callable

NUMBER = 1_795_221_641_865_000
GRANT = json.dumps({
    "id": "a", "token": f"{NUMBER}.0123456789abcdef", "fencing_token": NUMBER,
    "ttl_ms": 30000, "elapsed_ms": 0, "validity_ms": 29000,
    "renew_after_ms": 10000}).encode()


def whole(text: bytes = GRANT, head: bytes = b"HTTP/1.1 200 OK\r\n") -> bytes:
    return head + b"Content-Length: %d\r\n\r\n%s" % (len(text), text)


Action = Callable[["Raw", socket.socket], bool]  # whether the connection is kept


def says(*pieces: bytes, then_ends: bool = False) -> Action:
    def act(_: Raw, sock: socket.socket) -> bool:
        for piece in pieces:
            sock.sendall(piece)
        return not then_ends
    return act


def ends(_: Raw, __: socket.socket) -> bool:
    return False


def resets(_: Raw, sock: socket.socket) -> bool:
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    return False


def hangs(raw: Raw, sock: socket.socket) -> bool:
    raw.hanging.set()
    with contextlib.suppress(OSError):
        sock.recv(1)
    return False


def ends_when_idle(_: Raw, sock: socket.socket) -> bool:
    """The client sees the end before it asks again."""
    sock.sendall(whole())
    return False


class Raw:
    """Takes a request, does the next action; then `rest` for ever."""

    def __init__(self, *script: Action, rest: Action = says(whole()),
                 tls: ssl.SSLContext | None = None) -> None:
        self.script = list(script)
        self.rest = rest
        self.tls = tls
        self.requests: list[bytes] = []
        self.connections = self.ended = 0
        self.hanging = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.url = f"http{'s' * bool(tls)}://127.0.0.1:{self.port}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def methods(self) -> list[str]:
        return [one.split()[0].decode() for one in self.requests]

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                sock, _ = self._listener.accept()
                self.connections += 1
                threading.Thread(target=self._serve, args=(sock,),
                                 daemon=True).start()

    def _serve(self, sock: socket.socket) -> None:
        with contextlib.suppress(OSError, ssl.SSLError):
            if self.tls:
                sock = self.tls.wrap_socket(sock, server_side=True)
            with sock:
                while request := self._request(sock):
                    self.requests.append(request)
                    action = self.script.pop(0) if self.script else self.rest
                    if not action(self, sock):
                        break
        self.ended += 1

    def _request(self, sock: socket.socket) -> bytes:
        text = b""
        while b"\r\n\r\n" not in text:
            piece = sock.recv(65536)
            if not piece:
                return b""
            text += piece
        head, _, body = text.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b": ")
            if name == b"Content-Length":
                while len(body) < int(value):
                    body += sock.recv(65536)
        return head + b"\r\n\r\n" + body
