# SPDX-License-Identifier: MIT
"""Losses at the one moment at which a rule of docs/internals/guarantees.md is needed. What
is drawn at random meets that moment too seldom: a few ms, before a promise is
told or while a call is under way, with a bare majority.

A strike takes a lock itself and lets another server ask for the same one. What
both were told is in the history, like the calls of all clients. Nothing else is
wrong meanwhile (is_alone in plan.py); what is not as it should be when a strike
begins leaves it out.
"""
from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager

from cluster import Cluster
from history import ACQUIRE, MS, SECOND, Call, History, now
from jobs import Job
from memory import MemoryFaults, Pairs, until
from plan import NODES, Fault
from wants import Want

TTL_MS = 2000    # each server allows it
WAIT_MS = 1600   # of the other one: until shortly before that lock ends
PATIENT_S = 12    # then a strike that finds nodes away does nothing
SETTLED_S = 0.02  # within which what is on its way arrives


class Asker(Job):
    """A client that asks one server for one lock, once."""

    def __init__(self, cluster: Cluster, history: History, server: int,
                 name: str, wait_ms: int = 0) -> None:
        super().__init__(name=f"strike at server {server}")
        self.call = Call(ACQUIRE, -1, server, (name,), TTL_MS, wait_ms=wait_ms)
        self.history = history
        self.connection = cluster.visit(cluster.servers[server])
        self.head = cluster.head()

    def work(self) -> None:
        call, want = self.call, Want(self.call.resources, "", "")
        call.of, call.sent = call.id, now()
        self.history.add(call)
        self.connection.request(call, want.head() + self.head,
                                json.dumps(want.body(call)).encode())
        self.connection.close()


class Strikes(MemoryFaults):
    def __init__(self, cluster: Cluster, history: History) -> None:
        super().__init__(cluster)
        self.history = history
        self.is_quiet = False  # clients ask for nothing
        self.done: Counter[str] = Counter()
        self.names = (f"strike{i}" for i in itertools.count())

    def untold(self, fault: Fault) -> Iterator[None]:
        """A node forgets a promise of which one server knows, and that one can
        tell nobody: it had a bare majority, and is cut off. The other nodes of
        the majority still know of the lock."""
        yield
        server, node = fault.pairs[0][0], self.cluster.nodes[fault.target]
        others = [pair for pair in self._pairs(node) if pair[0] != server]
        if not (yield from self._wait_until_whole()):
            self.done["untold not whole"] += 1
            return
        with ExitStack() as cut, ExitStack() as still:
            cut.enter_context(self._stalled(fault.pairs))
            yield from self._wait_until_silent(server)
            still.enter_context(self._stalled(others))
            self.cluster.proxy.sync()
            time.sleep(SETTLED_S)
            size = node.log_size()
            holder = self._ask_for_lock(server, next(self.names))
            holder.join()
            if not holder.call.is_won:
                return
            cut.enter_context(self._stalled((server, n) for n in range(NODES)))
            self.cluster.proxy.sync()
            node.kill()
            node.cut_log(size)
            node.start()
            self.done["untold met"] += 1
            still.close()
            for pair in others:
                self.cluster.proxy.tell("reset", *pair)
            yield from self._let_ask(self._quickest(server), holder)

    def under_way(self, fault: Fault) -> Iterator[None]:
        """A node votes and forgets while the same call is still under way to the
        other nodes of the majority: these tell that they have promised nothing,
        and promise it when the node is back. All other promises have ended:
        the node would wait for them."""
        self.is_quiet = True
        try:
            yield
            if (yield from self._wait_until_whole(is_idle=True)):
                yield from self._overtake(fault)
            else:
                self.done["under-way not whole"] += 1
        finally:
            self.is_quiet = False

    def _overtake(self, fault: Fault) -> Iterator[None]:
        node, server = self.cluster.nodes[fault.target], fault.pairs[0][0]
        quick = self._quickest(server)
        own = (server, node.index)
        slow = [(server, n) for n in range(NODES)
                if (server, n) not in (own, *fault.pairs)]
        with ExitStack() as cut, ExitStack() as late:
            cut.enter_context(self._stalled(fault.pairs))
            late.enter_context(self._stalled(slow, (0,)))
            self.cluster.proxy.sync()
            holder = self._ask_for_lock(server, name := next(self.names))
            if not self._comes_true(lambda: name in self._keys(node)):
                return
            time.sleep(SETTLED_S)  # its vote has arrived, too
            cut.enter_context(self._stalled([own]))
            self.cluster.proxy.sync()
            self._ask(node, "FLUSHALL")
            self.cluster.proxy.tell("reset", quick, node.index)  # looks again
            if self._comes_true(lambda: self._has_admission(node)) and \
                    not holder.call.done:
                self.done["under-way met"] += 1
            late.close()
            holder.join()
            yield from self._let_ask(quick, holder)

    # ---- before it ----------------------------------------------------------

    def _wait_until_whole(self, is_idle: bool = False
                          ) -> Generator[None, None, bool]:
        """Whether all servers see all nodes vote; is_idle: and whatever was
        promised has ended."""
        deadline = now() + PATIENT_S * SECOND
        while now() < deadline:
            if self._is_whole() and (not is_idle or self._is_idle()):
                return True
            yield
        return False

    def _is_whole(self) -> bool:
        """What servers tell may be old: a node may have lost its data since."""
        try:
            return all(value for server in self.cluster.servers
                       for name, value in server.metrics().items()
                       if name.startswith("redlockd_node_voting")) and \
                all(map(self._has_admission, self.cluster.nodes))
        except OSError:
            return False  # a server that has just died

    def _is_idle(self) -> bool:
        return all(self._number(node, "until") / 1e6 <
                   time.time() + node.clock.offset_s()
                   for node in self.cluster.nodes)

    def _wait_until_silent(self, server: int) -> Iterator[None]:
        """That server waits no longer for nodes that it does not reach."""
        return until(lambda: False, (
            self.cluster.config.timeouts_ms[server] + 200) * MS)

    # ---- means --------------------------------------------------------------

    def _quickest(self, but: int) -> int:
        """The server, but for one, that is the first to admit a node."""
        timeouts_ms = self.cluster.config.timeouts_ms
        return min((s for s in range(len(timeouts_ms)) if s != but),
                   key=lambda s: timeouts_ms[s])

    def _ask_for_lock(self, server: int, name: str, wait_ms: int = 0) -> Asker:
        asker = Asker(self.cluster, self.history, server, name, wait_ms)
        asker.start()
        return asker

    def _let_ask(self, server: int, holder: Asker) -> Iterator[None]:
        """For the same lock."""
        [name] = holder.call.resources
        other = self._ask_for_lock(server, name, WAIT_MS)
        while other.is_alive():
            yield
        other.join()

    @contextmanager
    def _stalled(self, pairs: Pairs,
                 ways: tuple[int, ...] = (0, 1)) -> Iterator[None]:
        pairs = list(pairs)
        self._stall(pairs, ways)
        try:
            yield
        finally:
            self._unstall(pairs, ways)

    @staticmethod
    def _comes_true(condition: Callable[[], bool], timeout_s: float = 1) -> bool:
        """Soon; nothing else is done meanwhile, as here ms count."""
        deadline = time.monotonic() + timeout_s
        while not (is_true := condition()) and time.monotonic() < deadline:
            time.sleep(0.002)
        return is_true
