# SPDX-License-Identifier: MIT
"""A gateway in front of redlockd that authenticates: TLS, client certificates,
bearer tokens, limits."""
from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading

from world import PassOn, Proxy

from certificates import Certificates  # where world has told


class GateHandler(PassOn):
    server: Gate

    def pass_on(self) -> None:
        gate = self.server
        text = self.headers.get("Authorization", "")
        gate.asked.append((self.command, text))
        if gate.refusals > 0:
            gate.refusals -= 1
            self.refuse(429, "rate_limited", "you ask too often")
        elif gate.tokens is not None and \
                text not in [f"Bearer {token}" for token in gate.tokens]:
            self.refuse(401, "unauthorized", "the token is not known")
        elif gate.is_forbidden:
            self.refuse(403, "forbidden", "the scope lock is missing")
        else:
            super().pass_on()

    do_GET = do_POST = do_PUT = do_DELETE = pass_on

    def refuse(self, status: int, code: str, detail: str) -> None:
        self.body()
        text = json.dumps({"type": f"urn:redlockd:problem:{code}",
                           "status": status, "code": code, "detail": detail})
        if self.server.is_terse:
            text = "<h1>no</h1>"  # as of a gateway that is not redlockd
        self.answer(status, text, {"Retry-After": "1"} if status == 429 else {})


class Gate(Proxy):
    """A proxy that speaks TLS, and knows tokens; None: it asks for none."""

    def __init__(self, target: int, certificates: Certificates,
                 name: str = "server", client_ca: str | None = None) -> None:
        self.tokens: list[str] | None = None
        self.asked: list[tuple[str, str]] = []  # method, Authorization
        self.refusals = 0  # of the next requests
        self.is_forbidden = self.is_terse = False
        self.is_silent = False  # no handshake is answered
        self.handshakes = 0
        self.open: set[ssl.SSLSocket] = set()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificates[f"{name}.pem"],
                                     certificates[f"{name}.key"])
        if client_ca:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(certificates[client_ca])
        self.ended = threading.Event()
        super().__init__(target, {}, GateHandler)
        self.url = f"https://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        self.ended.set()
        super().close()

    def finish_request(self, request: socket.socket, client_address) -> None:
        if self.is_silent:
            self.ended.wait()
            return
        with self.context.wrap_socket(request, server_side=True) as tls:
            self.handshakes += 1
            self.open.add(tls)
            try:
                super().finish_request(tls, client_address)
            finally:
                self.open.discard(tls)

    def cut_connections(self) -> None:
        for tls in list(self.open):
            with contextlib.suppress(OSError):
                tls.shutdown(socket.SHUT_RDWR)
