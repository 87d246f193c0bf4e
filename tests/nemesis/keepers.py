# SPDX-License-Identifier: MIT
"""Clients that hold locks for seconds, each on resources of its own, so that
others have time to see them; and clients that poll for these, or read beside
them. What comes first is over within milliseconds, through another server: a
release, an extend, and then the lock that is held.
"""
from __future__ import annotations

from clients import HELD, Client, Grant
from history import ACQUIRE, EXCLUSIVE, SHARED, Call
from plan import log_uniform
from visits import ALL, Visitor
from wants import Want

POLLERS = 2
HOLDS_S = (1.5, 4)
POLLS_S = (0.05, 0.25)   # between two
SHARING = 0.4     # share of locks that are shared
BOTH = 0.15       # … that are on both resources of a keeper
EXTENDED = 0.5    # … that are extended while they are held


class Keeper(Client):
    """place: which of the keepers this is."""

    place = 0

    def _cycle(self) -> None:
        rng = self.rng
        names = HELD[2 * self.place:2 * self.place + 2]
        if rng.random() >= BOTH:
            names = [rng.choice(names)]
        want = Want(tuple(names), "", "",
                    mode=SHARED if rng.random() < SHARING else EXCLUSIVE)
        act = rng.random()
        if act < 0.35:
            grant = self._take(want)
            self._soon()
            if grant:
                self.release(grant)
            grant = self._take(want)
        elif act < 0.7:
            grant = self._take(want, is_short=True)
            self._soon()
            if grant:
                grant = self._prolong(grant)
        else:
            grant = self._take(want)
        if grant:
            self._keep(grant)
        else:
            self.pause(0.01, 0.05)

    def _take(self, want: Want, is_short: bool = False) -> Grant | None:
        call = self.note(ACQUIRE, want.resources)
        call.mode, longest = want.mode, self.world.max_ttls_ms[call.server]
        call.ttl_ms = min(2000, longest) if is_short else longest
        members = self.ask(call, want.head(), want.body(call))
        return Grant(call, members["token"], want.mode) if call.is_won else None

    def _prolong(self, grant: Grant) -> Grant | None:
        """None: it has ended, for all that its client knows."""
        call, grant = self.extend(grant)
        return grant if call.status not in (404, 409) else None

    def _draw_ttl_ms(self, call: Call) -> int:
        """Of an extend."""
        return self.world.max_ttls_ms[call.server]

    def _soon(self) -> None:
        self.pause(0.0005, 0.1)

    def _keep(self, grant: Grant) -> None:
        left_s = self.rng.uniform(*HOLDS_S)
        is_extended = self.rng.random() < EXTENDED
        while left_s > 0 and not self.world.stop.is_set():
            step_s = min(left_s, self.rng.uniform(0.5, 2))
            self.world.stop.wait(step_s)
            left_s -= step_s
            if is_extended and left_s > 0:
                extended = self._prolong(grant)
                if not extended:
                    return
                grant = extended
        act = self.rng.random()
        if act < 0.6:
            self.release(grant)
        elif act < 0.8:
            Visitor(self).force(grant.call.resources,
                                ALL if grant.mode == SHARED else
                                str(grant.call.number))


class Poller(Client):
    """Wants what keepers hold, and does not keep it."""

    def _cycle(self) -> None:
        names = (self.rng.choice(HELD),)
        mode = SHARED if self.rng.random() < 0.7 else EXCLUSIVE
        grants = self.acquire(Want(names, "", "", mode=mode))
        if grants:
            self.pause(0.0005, 0.05)
            self.release(grants[-1])
        self.world.stop.wait(log_uniform(self.rng, *POLLS_S))
