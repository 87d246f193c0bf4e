# SPDX-License-Identifier: MIT
"""What a client asks about locks that are not its own, and an operator about
all of them: who has it, which there are, the slots of a pool, every page; and
forced releases, of what was seen a moment ago, or of all readers.
"""
from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from history import EVERY, FORCE, INSPECT, LIST, PAGE, POOL, SHARED, Call
from identities import ADMIN, ANYBODY, WIDE, Identity
from wants import lock_id

if TYPE_CHECKING:
    from clients import Client

POOL_NAME, SLOTS = "pool", 4  # with permits, of which there are many clients
LONELY = tuple(f"lonely{i}" for i in range(6))  # pools that have few
PAGES_MOST = 4  # of a list
ALL = "all"  # readers, in a forced release


class Visitor:
    def __init__(self, client: Client) -> None:
        self.client, self.rng = client, client.rng

    def visit(self) -> None:
        act = self.rng.random()
        if act < 0.3:
            self.inspect(self.draw_resources())
        elif act < 0.45:
            self.force_what_is_seen()
        elif act < 0.6:
            self.see_pool()
        elif act < 0.8:
            self.list()
        else:
            self.see_page()

    def draw_resources(self) -> tuple[str, ...]:
        """Of a lock, or of a permit that somebody may have."""
        if self.client.slots and self.rng.random() < 0.2:
            count = 1 if self.rng.random() < 0.8 else 2
            return tuple(sorted(self.rng.sample(self.client.slots, count)))
        count = 1 if self.rng.random() < 0.8 else self.rng.randint(2, 3)
        return tuple(sorted(self.rng.sample(self.client.names, count)))

    def inspect(self, resources: tuple[str, ...]) -> Call:
        call = self.client.note(INSPECT, resources)
        self.client.ask(call, f"GET /locks/{lock_id(resources)} HTTP/1.1\r\n")
        return call

    def see_pool(self) -> None:
        """Its own, with its limit or another one; or one that nobody has."""
        name = self.rng.choice((POOL_NAME, POOL_NAME, self.rng.choice(LONELY),
                                self.client.draw_name()))
        limit = self.rng.choice((SLOTS, SLOTS, 1, 100))
        self._read(POOL, name, f"/pools/{lock_id((name,))}?limit={limit}")

    def list(self) -> None:
        """Page by page, until this client has seen enough."""
        prefix = self.rng.choice(("", "r", "r1", POOL_NAME, "nothing"))
        size = self.rng.choice((0, 1, 3, 1000))
        words = [f"prefix={quote(prefix)}"] if prefix else []
        words += [f"page_size={size}"] if size else []
        cursor, server = "", None
        for _ in range(PAGES_MOST):
            path = "/locks?" + "&".join(
                words + ([f"cursor={cursor}"] if cursor else []))
            call, members = self._read(LIST, cursor or EVERY,
                                       path.rstrip("?"), server)
            # of another server, too: it need not know this list
            server = call.server if self.rng.random() < 0.8 else None
            if not call.is_won or not (cursor := members.get("next_cursor", "")):
                return

    def see_page(self) -> None:
        """The next one, whoever saw the last: so a short run sees all."""
        path = self.client.world.next_page()
        self._read(PAGE, path, path)

    def force_what_is_seen(self) -> None:
        """As an operator does; it may have changed hands since."""
        resources = self.draw_resources()
        seen = self.inspect(resources)
        if seen.is_won and seen.mode == SHARED:
            self.force(resources, ALL)
        elif seen.is_won and seen.number:
            self.force(resources, str(seen.number))

    def force(self, resources: tuple[str, ...], what: str) -> Call:
        """what: a number, or all."""
        call = self.client.note(FORCE, resources)
        call.after, call.number = what, 0 if what == ALL else int(what)
        self.client.world.note_force(call)
        self.client.ask(call, f"DELETE /locks/{lock_id(resources)}?force={what}"
                        " HTTP/1.1\r\n", None, self._as(ADMIN))
        return call

    def _read(self, op: str, name: str, path: str,
              server: int | None = None) -> tuple[Call, dict]:
        call = self.client.note(op, (name,))
        if server is not None:
            call.server = server
        members = self.client.ask(call, f"GET {path} HTTP/1.1\r\n", None,
                                  self._as(WIDE))
        return call, members

    def _as(self, who: Identity) -> Identity:
        """Where there are identities."""
        return ANYBODY if self.client.identity is ANYBODY else who
