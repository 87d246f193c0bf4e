# SPDX-License-Identifier: MIT
"""A keep-alive HTTP connection to one server, and what one call got from it."""
from __future__ import annotations

import contextlib
import json
import random
import re
import socket
import ssl
from dataclasses import dataclass

from history import (ACQUIRE, EXCLUSIVE, EXTEND, FREE, INSPECT, LOOK, PAGE,
                     POOL, SHARED, WATCH, Call, now)
from plan import log_uniform
from stream import Plain, Secure
from wants import slot_name

SILENT_S = 30  # longer than any pause of a server, and all rounds of a call

# when a client leaves, and how
ASKING = "asking"    # a part of the request is sent
WAITING = "waiting"  # all of it; perhaps the answer has come
UNREAD = "unread"    # the answer has come
READING = "reading"  # a part of it was read
BEHIND = "behind"    # all of it was read
RESET, CLOSE, HALF = "reset", "close", "half"


@dataclass(frozen=True)
class Leave:
    """A client ends its connection without caring where its call is. Half: it
    sends no more, but reads what there is."""
    when: str
    how: str
    part: float    # of what is sent or read
    stay_s: float  # before that
    is_polite: bool = False  # says goodbye, in TLS

    @staticmethod
    def draw(rng: random.Random, is_behind: bool,
             longest_s: float = 0.05) -> Leave:
        whens = (BEHIND,) if is_behind else (ASKING, WAITING, WAITING, UNREAD,
                                             READING)
        return Leave(rng.choice(whens), rng.choice((RESET, CLOSE, HALF)),
                     rng.random(), log_uniform(rng, 0.0001, longest_s),
                     rng.random() < 0.5)


def version_of(lock: dict) -> str:
    """It must fit what else is told."""
    version, mode = lock["version"], lock.get("mode")
    if not lock["held"]:
        form = FREE
    elif mode:
        form = SHARED if mode == SHARED else str(lock["fencing_token"])
    else:
        form = "foreign(-[0-9a-f]{16})?|split"
    if not re.fullmatch(form, version):
        raise ValueError(f"version {version} of {lock}")
    return version


class Left(Exception):
    """The client has gone, and knows nothing of an answer."""


class Connection:
    def __init__(self, address: tuple[str, int], is_balanced: bool = False,
                 context: ssl.SSLContext | None = None) -> None:
        """context: of TLS, if the server speaks it."""
        self.address, self.is_balanced = address, is_balanced
        self.context = context
        self.stream: Plain | None = None
        self.opened = 0
        self.taken = b""  # of the answer that is awaited

    def request(self, call: Call, head: str, body: bytes = b"",
                leave: Leave | None = None) -> dict:
        """Sends, waits, and notes the answer; its members, if there are any."""
        members: dict = {}
        is_kept = False
        try:
            if self.stream and not self._is_clean():
                call.code = "stray"  # bytes that nobody asked for
                return {}
            self._send(call, head, body, leave)
            if leave and leave.when != BEHIND:
                self._leave(leave)
            members, is_last = self._read(call)
            is_kept = not is_last and not leave
            if leave and leave.when == BEHIND:
                self._end(leave)
                self._expect_end()
        except Left:
            call.code = "vanished"
        except TimeoutError:
            call.code = "timeout"
        except OSError as error:
            call.code = ("vanished" if leave else "refused" if
                         isinstance(error, ConnectionRefusedError) else "closed")
        except ValueError as error:
            call.code = f"garbled: {error}"
        finally:
            if not is_kept:
                self.close()
            call.done = now()  # last: the checker may look at any time
        return members

    def close(self) -> None:
        if self.stream:
            self.stream.close()
            self.stream = None

    # ---- leaving ------------------------------------------------------------

    def _leave(self, leave: Leave) -> None:
        """Returns if the client reads on."""
        assert self.stream
        if leave.when == READING:
            self.stream.take(1 + int(leave.part * 400))
        elif leave.when == UNREAD:
            self.stream.look()
        else:
            self._stay(leave.stay_s)
        self._end(leave)
        if leave.how != HALF:
            raise Left
        if leave.when == ASKING:
            self._stay(leave.stay_s)  # nothing need come before a deadline
            raise Left

    def _stay(self, stay_s: float) -> None:
        """At most so long, and until something comes."""
        assert self.stream
        self.stream.wait(stay_s)
        with contextlib.suppress(TimeoutError):
            # not read but looked at: what lies there is never taken
            self.stream.look()
        self.stream.wait(SILENT_S)

    def _end(self, leave: Leave) -> None:
        """Ends what the client sends, or all."""
        assert self.stream
        if leave.how == HALF:
            self.stream.end_sending(leave.is_polite)
            return
        if leave.how == RESET:
            self.stream.reset_at_end()
        elif leave.is_polite:
            self.stream.say_goodbye()
        self.close()

    def _expect_end(self) -> None:
        """Of an answered client that sends no more, and is there."""
        with contextlib.suppress(ConnectionResetError):
            if self.stream and self.stream.receive():
                raise ValueError("something behind the answer")

    # ---- one call -----------------------------------------------------------

    def _is_clean(self) -> bool:
        """No byte has come since the last answer. One that the server closed
        meanwhile is opened anew."""
        assert self.stream
        self.stream.wait(0)
        try:
            if self.stream.receive():
                return False
        except BlockingIOError:
            return True
        except OSError:
            pass
        self.close()
        return True

    def _send(self, call: Call, head: str, body: bytes,
              leave: Leave | None) -> None:
        self.taken = b""
        if not self.stream:
            self.opened = now()
            self.stream = self._connect()
        self.stream.wait(SILENT_S)
        text = (f"{head}Host: nemesis\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode() + body
        call.sent = now()
        # a balancer opens a connection of its own
        call.opened = call.sent if self.is_balanced else self.opened
        part = leave.part if leave and leave.when == ASKING else 1
        self.stream.send(text, part)

    def _connect(self) -> Plain:
        plain = socket.create_connection(self.address, SILENT_S)
        if not self.context:
            return Plain(plain)
        return Secure(plain, self.context, self.address[0])

    def _read(self, call: Call) -> tuple[dict, bool]:
        """The members of the answer, and whether it is the last one here."""
        while (end := self.taken.find(b"\r\n\r\n")) < 0:
            self._receive()
        head = self.taken[:end].decode("latin-1").lower()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:])
        size = end + 4 + int(fields["content-length"])
        while len(self.taken) < size:
            self._receive()
        if len(self.taken) > size:
            raise ValueError("more than the answer")
        status = int(head.split(" ", 2)[1])
        is_last = fields.get("connection") == "close"
        is_json = "json" in fields.get("content-type", "")
        if call.op == PAGE and (is_json or status == 200):
            call.status = status
            return {}, is_last
        if not is_json:
            if self.is_balanced:  # it lost its server, or has none
                raise ConnectionResetError
            raise ValueError(f"{status} {self.taken[end + 4:][:80]!r}")
        members = json.loads(self.taken[end + 4:])
        if call.others is not None and "results" in members:
            if len(members["results"]) != len(call.others) + 1:
                raise ValueError(f"{len(members['results'])} results")
            item = members["results"][call.place]
            status = item.pop("status")
            [members] = item.values()
        call.status = status
        call.code = members.get("code", "")
        call.elapsed_ms = members.get("elapsed_ms", 0)
        call.validity_ms = members.get("validity_ms", 0)
        number = members.get("fencing_token", 0)
        if call.op == EXTEND and number not in (0, call.number):
            raise ValueError(f"the number became {number}")
        call.number = call.number or number
        mode = members.get("mode", EXCLUSIVE)
        if call.op in (INSPECT, WATCH):
            call.mode = mode
        if call.op in (INSPECT, WATCH, LOOK) and status == 200:
            call.version = version_of(members)
        if call.op in (ACQUIRE, EXTEND) and "token" in members and \
                mode != call.mode:
            raise ValueError(f"the mode is {mode}")
        if "slots" in members and call.op != POOL:
            slots = tuple(sorted(slot_name(members["resource"], slot)
                                 for slot in members["slots"]))
            if call.op != ACQUIRE and slots != call.resources:
                raise ValueError(f"of {call.resources} it tells {slots}")
            call.resources = slots
        return members, is_last

    def _receive(self) -> None:
        assert self.stream
        piece = self.stream.receive()
        if not piece:
            raise ConnectionResetError
        self.taken += piece
