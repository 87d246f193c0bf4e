# SPDX-License-Identifier: MIT
"""Other names for the nodes, which are the next configuration, and the way back:
the old names, with the epoch after that.

  other-names  the list holds no majority of the old names, and the old servers
               go on: the new server must refuse, and must change nothing
  new-names    the list holds a majority of them: the new server takes the nodes
               from the old servers, which go on, and is ready soon; or it dies
               amid the change, and stays away, or is started again
  take-over    the list holds no majority, and the old servers are stopped
"""
from __future__ import annotations

import random
from collections.abc import Callable, Generator, Iterator

from changes import READY_S, Changes
from history import SECOND, now
from plan import Fault

REFUSES_S = 5       # after which a new server says that it refuses
SLOW_S = 10         # of a noisy machine
BESIDE_S = 10       # for which nodes may wait for a machine that they knew
AMID_S = 4          # in which nodes are marked, and the first ones admitted
HOLDS_S = 4         # for which both configurations have their clients
REFUSED = "names_refused"


class Names(Changes):
    def other_names(self, fault: Fault) -> Iterator[None]:
        """For as long as a new server may take to admit nodes by time alone."""
        yield
        if not (yield from self._is_calm(fault)):
            return
        before, written = self._births(), self._size_of_log()
        over = now() + self._due(REFUSES_S)
        mistaken = self._mistake(fault, fault.kind)
        next(mistaken)
        yield from self._until(lambda: False, over)
        self._compare(fault.kind, before, self._births())
        granted = self.done[f"{fault.kind} granted"]
        next(mistaken, None)
        if self.done[f"{fault.kind} granted"] > granted:
            self._report("undisturbed", "a server that has no majority of the "
                         "old names granted a lock")
        if REFUSED not in self._log_from(written):
            self._report("undisturbed", "a server that has no majority of the "
                         f"old names did not say {REFUSED}")
        self.done[f"{fault.kind} met"] += 1
        if fault.way:
            yield from self._go_back(fault)
            yield from self._note_epoch()

    def new_names(self, fault: Fault) -> Iterator[None]:
        yield
        if not (yield from self._is_calm(fault)):
            return
        if fault.way:
            yield from self._die_amid(fault)
        has_begun = max(self._epochs(), default=0) > self.epoch
        if not fault.way or has_begun or fault.begin % 1 < 0.5:
            yield from self._be_new(fault)
        yield from self._go_back(fault)
        yield from self._note_epoch()

    def take_over(self, fault: Fault) -> Iterator[None]:
        """And back in the same way, if too few of its names are left."""
        yield
        if not (yield from self._is_calm(fault)):
            return
        for index in self._order(fault):
            self._kill_server(index, is_gentle=bool(fault.way))
        yield from self._be_new(fault)
        yield from self._go_back(fault, takes_over=True)
        yield from self._until(
            lambda: all(one.is_ready() for one in self.cluster.servers),
            now() + self._due(BESIDE_S))
        for server in self.cluster.servers:
            server.extra.remove(self._word())  # from its next start on

    def _is_calm(self, fault: Fault) -> Generator[None, None, bool]:
        yield from self._until(self._is_whole, now() + self._due(BESIDE_S))
        is_whole = self._is_whole()
        self.done[f"{fault.kind} not whole"] += not is_whole
        return is_whole

    def _be_new(self, fault: Fault) -> Iterator[None]:
        """The new server is there, for a while; and then is not."""
        over = now() + self._due(BESIDE_S)
        mistaken = self._mistake(fault, fault.kind)
        next(mistaken)
        yield from self._until(self.cluster.mistaken.is_ready, over)
        if not self.cluster.mistaken.is_ready():
            self._report("whole", f"{fault.kind}: the new server was not ready "
                         "in time")
        yield from self._until(lambda: False, now() + HOLDS_S * SECOND)
        next(mistaken, None)
        self.done[f"{fault.kind} met"] += 1

    def _die_amid(self, fault: Fault) -> Iterator[None]:
        """Before the new server looked, marked its nodes, or admitted them."""
        mistaken = self._mistake(fault, fault.kind)
        next(mistaken)
        lives_s = random.Random(fault.end).uniform(0, AMID_S)
        yield from self._until(lambda: False, now() + int(lives_s * SECOND))
        next(mistaken, None)
        self.done[f"{fault.kind} died amid"] += 1

    def _note_epoch(self) -> Iterator[None]:
        """The servers follow that of the nodes, if these have their names."""
        yield from self._until(self._is_whole, now() + self._due(BESIDE_S))
        epochs = self._epochs()
        self.epoch = max(epochs, key=epochs.count, default=self.epoch)

    def _epochs(self) -> list[int]:
        """With which the nodes are admitted, under whatever names."""
        return [int(admit.split(":")[0])
                for what, admit in self._births().items()
                if what.startswith("the admission") and admit[:1].isdigit()]

    def _go_back(self, fault: Fault,
                 takes_over: bool = False) -> Iterator[None]:
        """One server after the other, or all that are down."""
        self.epoch += 2
        extra = [*self.cluster.extra, *self._epoch()]
        if takes_over:
            extra.append(self._word())
        down = set(self.killed)
        for index in self._order(fault):
            server = self.cluster.servers[index]
            server.extra = list(extra)
            if index in down:
                self._start_server(index)
                continue
            self._restart(index, fault)
            yield from self._until(server.is_ready, now() + READY_S * SECOND)

    def _due(self, more_s: float) -> int:
        return int((self.quarantine_s + more_s + SLOW_S) * SECOND)

    @staticmethod
    def _until(is_true: Callable[[], bool], over: int) -> Iterator[None]:
        """Asks seldom enough to disturb nobody."""
        due = now()
        while now() < over:
            if now() >= due:
                if is_true():
                    return
                due = now() + SECOND // 5
            yield

    def _size_of_log(self) -> int:
        log = self.cluster.mistaken.log
        return log.stat().st_size if log.exists() else 0

    def _log_from(self, size: int) -> str:
        text = self.cluster.mistaken.log.read_bytes()
        return text[size if size <= len(text) else 0:].decode(errors="replace")
