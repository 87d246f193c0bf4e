# SPDX-License-Identifier: MIT
"""Clients that ask for what they may not have: with a token that nobody has,
for resources outside of their prefixes, or by force. They must be refused, get
no lock, and change none.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from wants import Want, lock_id
from history import LOOK, STRANGER, TRESPASS, Call
from identities import NARROW, WIDE, Identity
from identities import STRANGER as NOBODY

if TYPE_CHECKING:
    from clients import Client, Grant

SHARE = 0.03      # of the cycles of a client
MEDDLING = 0.05   # of the locks that somebody has


class Trespasser:
    def __init__(self, client: Client) -> None:
        self.client, self.rng = client, client.rng

    def acquire(self) -> None:
        """A lock that nobody asks for otherwise, and nobody ever gets; at times
        with a resource that the client might have."""
        client = self.client
        closed = f"x{client.index}"
        resources = [closed]
        if self.rng.random() < 0.3:
            resources.append(client.draw_name())
        want = Want(tuple(sorted(resources)), "", "")
        is_strange = client.identity is WIDE or self.rng.random() < 0.5
        call = self._note(is_strange, want.resources)
        call.wait_ms = self.rng.choice((0, 100))
        self._send(call, want.head(), want.body(call))
        look = client.note(LOOK, (closed,))
        client.ask(look, f"GET /locks/{closed} HTTP/1.1\r\n", None, WIDE)

    def meddle(self, grant: Grant) -> None:
        """Its holder believes in the lock on, and is told that it has it."""
        resources = grant.call.resources
        is_outside = not NARROW.may_ask(resources)
        is_strange = not is_outside or self.rng.random() < 0.5
        call = self._note(is_strange, resources)
        token = f"X-Lock-Token: {grant.token}\r\n"
        path = f"/locks/{lock_id(resources)}"
        act = self.rng.random()
        if act < 0.4:
            self._send(call, f"PUT {path}/extend HTTP/1.1\r\n{token}",
                       {"ttl_ms": call.ttl_ms})
        elif act < 0.7:
            self._send(call, f"DELETE {path} HTTP/1.1\r\n{token}")
        else:
            # who may have the lock may not do that with it, either
            call.op = TRESPASS
            self._send(call, f"DELETE {path}?force={grant.call.number} "
                       "HTTP/1.1\r\n", who=self.client.identity)

    def _note(self, is_strange: bool, resources: tuple[str, ...]) -> Call:
        call = self.client.note(STRANGER if is_strange else TRESPASS, resources)
        call.ttl_ms = self.client.world.max_ttls_ms[call.server]
        return call

    def _send(self, call: Call, head: str, body: dict | None = None,
              who: Identity | None = None) -> None:
        if not who:
            who = NOBODY if call.op == STRANGER else NARROW
        self.client.ask(call, head, body, who)
