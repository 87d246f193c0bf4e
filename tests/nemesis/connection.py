"""A keep-alive HTTP connection to one server, and what one call got from it."""
from __future__ import annotations

import json
import socket
import struct

from history import EXTEND, Call, now

SILENT_S = 30  # longer than any pause of a server, and all rounds of a call


class Connection:
    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self.socket: socket.socket | None = None
        self.opened = 0

    def request(self, call: Call, head: str, body: bytes = b"") -> dict:
        """Sends, waits, and notes the answer; its members, if there are any."""
        try:
            if self.socket and not self._is_clean():
                self.close()
                call.code = "stray"  # bytes that nobody asked for
                return {}
            self._send(call, head, body)
            members, is_last = self._read(call)
            if is_last:
                self.close()
            return members
        except ConnectionRefusedError:
            call.code = "refused"
        except TimeoutError:
            call.code = "timeout"
        except OSError:
            call.code = "closed"
        except ValueError as error:
            call.code = f"garbled: {error}"
        finally:
            call.done = now()  # last: the checker may look at any time
        self.close()
        return {}

    def vanish(self, call: Call, head: str, body: bytes, stay_s: float,
               part: float, is_reset: bool) -> None:
        """Sends a part of a request, stays for a while and closes."""
        try:
            if self.socket and not self._is_clean():
                self.close()
            self._send(call, head, body, part)
            assert self.socket
            self.socket.settimeout(stay_s)
            try:
                # not read but looked at: what lies there is never taken
                self.socket.recv(1, socket.MSG_PEEK)
            except TimeoutError:
                pass
        except OSError:
            pass  # its server was killed
        call.code, call.done = "vanished", now()
        self.close(is_reset)

    def close(self, is_reset: bool = False) -> None:
        if self.socket:
            if is_reset:
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                                       struct.pack("ii", 1, 0))
            self.socket.close()
            self.socket = None

    def _is_clean(self) -> bool:
        """No byte has come since the last answer. One that the server closed
        meanwhile is opened anew."""
        assert self.socket
        self.socket.settimeout(0)
        try:
            if self.socket.recv(1):
                return False
        except BlockingIOError:
            return True
        except OSError:
            pass
        self.close()
        return True

    def _send(self, call: Call, head: str, body: bytes,
              part: float = 1) -> None:
        if not self.socket:
            self.opened = now()
            self.socket = socket.create_connection(self.address, SILENT_S)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.settimeout(SILENT_S)
        call.opened = self.opened
        text = (f"{head}Host: nemesis\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        call.sent = now()
        self.socket.sendall(text[:max(1, int(len(text) * part))])

    def _read(self, call: Call) -> tuple[dict, bool]:
        """The members of the answer, and whether it is the last one here."""
        assert self.socket
        text = b""
        while (end := text.find(b"\r\n\r\n")) < 0:
            text += self._receive()
        head = text[:end].decode("latin-1").lower()
        body = text[end + 4:]
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
        size = int(fields["content-length"])
        while len(body) < size:
            body += self._receive()
        if len(body) > size:
            raise ValueError("more than the answer")
        members = json.loads(body)
        call.status = int(head.split(" ", 2)[1])
        call.code = members.get("code", "")
        call.elapsed_ms = members.get("elapsed_ms", 0)
        call.validity_ms = members.get("validity_ms", 0)
        number = members.get("fencing_token", 0)
        if call.op == EXTEND and number not in (0, call.number):
            raise ValueError(f"the number became {number}")
        call.number = call.number or number
        return members, fields.get("connection") == "close"

    def _receive(self) -> bytes:
        assert self.socket
        piece = self.socket.recv(16384)
        if not piece:
            raise ConnectionResetError
        return piece
