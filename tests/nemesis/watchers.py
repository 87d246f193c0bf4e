# SPDX-License-Identifier: MIT
"""Clients that watch a lock: GET with the version that they know, again and
again, through whichever servers. They come, stay for a while, and leave: behind
an answer, or in the midst of waiting for one.
"""
from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from clients import Client
from history import FREE, WATCH, Call
from plan import log_uniform
from wants import lock_id

if TYPE_CHECKING:
    from collections.abc import Iterator

WATCH_MIN_MS, WATCH_MAX_MS = 1, 5000
SEVERAL = 0.1      # share of sessions that watch several resources
AT_ONCE = 0.7      # … that follow without a pause
LIVELY = 0.7       # … that watch what is held for long
ELSEWHERE = 0.1    # share of watches through another server than before
LENGTHS = (1, 40)  # watches of a session
SESSIONS: Iterator[int] = itertools.count(1)


class Watcher(Client):
    def _cycle(self) -> None:
        """A session: it ends early when a watch is left."""
        resources = self._draw_watched()
        known, session = FREE, next(SESSIONS)
        server = self.rng.randrange(len(self.connections))
        follows = self.rng.random() < AT_ONCE
        for _ in range(int(log_uniform(self.rng, *LENGTHS))):
            if self.world.stop.is_set():
                return
            call = self.watch(resources, known, session, server)
            if call.code == "vanished":
                return
            known = told(call) or known
            if not call.status or call.status >= 500:
                self.pause(0.02, 0.1)  # as a client does that is turned away
            elif not follows:
                self.pause(0.001, 0.3)
            if not call.status or self.rng.random() < ELSEWHERE:
                server = self.rng.randrange(len(self.connections))

    def watch(self, resources: tuple[str, ...], known: str, session: int,
              server: int) -> Call:
        call = self.note(WATCH, resources)
        call.after, call.session, call.server = known, session, server
        call.wait_ms = int(log_uniform(self.rng, WATCH_MIN_MS, WATCH_MAX_MS))
        self.ask(call, f"GET /locks/{lock_id(resources)}?after={known}&"
                 f"wait_ms={call.wait_ms} HTTP/1.1\r\n")
        return call

    def _draw_watched(self) -> tuple[str, ...]:
        """One of which there is something to tell, often."""
        lively = [name for name in self.world.lively
                  if self.identity.may_ask((name,))]
        if lively and self.rng.random() < LIVELY:
            return (self.rng.choice(lively),)
        count = 1 if self.rng.random() >= SEVERAL else 2
        return tuple(sorted(self.rng.sample(self.names, count)))


def told(call: Call) -> str:
    """The version that an answer tells; empty: it tells none."""
    return call.version if call.status == 200 else ""
