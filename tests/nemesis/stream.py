# SPDX-License-Identifier: MIT
"""What a client says and hears over one connection: as it is, or inside TLS.

TLS is done in memory, the socket stays ours: so a client may leave anywhere,
look at what lies in the socket without taking it, and take a part of a record.
"""
from __future__ import annotations

import contextlib
import socket
import ssl
import struct

READ_MAX = 16384


class Plain:
    def __init__(self, plain: socket.socket) -> None:
        self.socket = plain
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.early = b""  # was taken before anybody asked what it says

    def wait(self, timeout_s: float | None) -> None:
        """How long the other calls may."""
        self.socket.settimeout(timeout_s)

    def send(self, text: bytes, part: float = 1) -> None:
        """All of it, or its first part."""
        self._send_part(text, part)

    def receive(self) -> bytes:
        """Empty: the end."""
        piece, self.early = self.early, b""
        return piece or self.socket.recv(READ_MAX)

    def take(self, size: int) -> None:
        """At most so many bytes of what comes."""
        self.early += self.socket.recv(size)

    def look(self) -> None:
        """Until something comes, which is left where it lies."""
        self.socket.recv(1, socket.MSG_PEEK)

    def say_goodbye(self) -> None:
        """TCP has no word for it."""

    def end_sending(self, is_polite: bool) -> None:
        del is_polite
        self.socket.shutdown(socket.SHUT_WR)

    def reset_at_end(self) -> None:
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                               struct.pack("ii", 1, 0))

    def close(self) -> None:
        self.socket.close()

    def _send_part(self, wire: bytes, part: float) -> None:
        self.socket.sendall(wire[:max(1, int(len(wire) * part))])


class Secure(Plain):
    def __init__(self, plain: socket.socket, context: ssl.SSLContext,
                 host: str = "") -> None:
        """Shakes hands. host: of the server; without, this is one."""
        super().__init__(plain)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, not host,
                                    host or None)
        try:
            self._shake_hands()
        except BaseException:
            self.close()
            raise

    def send(self, text: bytes, part: float = 1) -> None:
        """A part ends within a record, or between two."""
        middle = len(text) // 2 if part < 1 else 0
        for piece in (text[:middle], text[middle:]):
            if piece:
                self.tls.write(piece)
        self._send_part(self.outgoing.read(), part)

    def receive(self) -> bytes:
        while True:
            try:
                return self.tls.read(READ_MAX)
            except ssl.SSLWantReadError:
                if not self._feed():
                    return b""  # without a goodbye
            except ssl.SSLZeroReturnError:
                return b""
            except ssl.SSLError as error:
                raise ValueError(f"TLS: {error.reason}") from error

    def take(self, size: int) -> None:
        self.incoming.write(self.socket.recv(size))

    def say_goodbye(self) -> None:
        rest = self.incoming.read()  # of an answer: not what unwrap awaits
        with contextlib.suppress(ssl.SSLWantReadError):
            self.tls.unwrap()
        self.incoming.write(rest)
        self._flush()

    def end_sending(self, is_polite: bool) -> None:
        """A goodbye while TCP stays open; or nothing but the end of TCP."""
        if is_polite:
            self.say_goodbye()
        else:
            super().end_sending(is_polite)

    def _shake_hands(self) -> None:
        while True:
            try:
                self.tls.do_handshake()
                self._flush()
                return
            except ssl.SSLWantReadError:
                self._flush()
                if not self._feed():
                    raise ConnectionResetError from None
            except ssl.SSLError as error:
                raise ValueError(f"handshake: {error.reason}") from error

    def _feed(self) -> bool:
        wire = self.socket.recv(READ_MAX)
        self.incoming.write(wire)
        return bool(wire)

    def _flush(self) -> None:
        if wire := self.outgoing.read():
            self.socket.sendall(wire)
