# SPDX-License-Identifier: MIT
"""Does the faults of a plan, undoes them, and notes when they were active.

Each kind is a generator: what stands before its first yield begins the fault,
what stands behind it ends it. There it may yield on, while it waits for
something: it is asked again soon.
"""
from __future__ import annotations

import signal
from collections.abc import Iterator
from dataclasses import replace

from calm import Metronome, Window
from cluster import Cluster
from history import SECOND, History, Span, now
from memory import until
from nodes import Node, Process, Redis
from plan import KINDS, LOSSY_NODES, Fault, clash, takes_locks
from spread import Spread

BURN = ("local begin = os.clock() while os.clock() - begin < tonumber(ARGV[1]) "
        "do end return 1")


class Injector(Spread):
    """To be used by the main thread only, as it starts processes."""

    def __init__(self, cluster: Cluster, history: History,
                 quarantine_s: float, names: list[str]) -> None:
        super().__init__(cluster, history, names)
        self.quarantine_s = quarantine_s
        self.windows: list[Window] = []  # calm times
        self.metronome = Metronome()
        self.metronome.start()
        self.active: dict[Fault, tuple[Iterator[None], Span]] = {}
        self.ending: dict[Fault, tuple[Iterator[None], Span]] = {}
        self.losses: list[tuple[int, Span]] = []

    def begin(self, fault: Fault) -> None:
        if not self._may_begin(fault):
            self.done["left out"] += 1
            return
        span = Span(fault.kind, self._describe(fault))
        if KINDS[fault.kind].is_lossy:
            self.losses.append((fault.target, span))
        self.history.spans.append(span)
        steps = getattr(self, fault.kind.replace("-", "_"))(fault)
        self._go_on(steps, span)
        self.active[fault] = (steps, span)
        self.done[fault.kind] += 1

    def end(self, fault: Fault) -> None:
        if fault not in self.active:
            return
        self.ending[fault] = self.active.pop(fault)
        self._end_what_can_be()

    def look(self) -> None:
        """What has to be noticed between faults."""
        self._end_what_can_be()
        for span in self.restarting[:]:
            if self.cluster.servers[span.server].listens():
                span.end = now()
                self.restarting.remove(span)
        for node in self.cluster.nodes:
            node.note_size()

    def is_busy(self) -> bool:
        return bool(self.ending or self.restarting)

    def heal(self) -> None:
        """Takes back what a node may not have heard, as it was too slow."""
        self.cluster.wait_for_nodes()
        for node in self.cluster.nodes:
            self._ask(node, "CONFIG", "SET", "maxmemory", "0", "maxclients",
                      "10000", "maxmemory-policy", "noeviction")
            self._ask(node, "REPLICAOF", "NO", "ONE")

    def kills(self) -> list[Span]:
        return [span for span in self.history.spans if span.server >= 0]

    def _end_what_can_be(self) -> None:
        for fault, (steps, span) in list(self.ending.items()):
            if not self._go_on(steps, span):
                span.end = now()
                del self.ending[fault]

    @staticmethod
    def _go_on(steps: Iterator[None], span: Span) -> bool:
        """False: it has ended."""
        try:
            next(steps)
            return True
        except StopIteration:
            return False
        except OSError as error:  # a node that answers no command of ours
            span.text += f" ({error})"
            return False

    def _may_begin(self, fault: Fault) -> bool:
        """The plan took care of it, but this machine may be slow."""
        if any(clash(fault, replace(other, end=fault.begin))
               for other in self.ending):
            return False
        if not KINDS[fault.kind].is_lossy or fault.target < 0:
            return True
        since = now() - int(self.quarantine_s * SECOND)
        nodes = {one for one, span in self.losses if one >= 0 and
                 (span.end == 0 or span.end > since)}
        return len(nodes | {fault.target}) <= LOSSY_NODES

    @staticmethod
    def _describe(fault: Fault) -> str:
        target = KINDS[fault.kind].target
        text = ""
        if target in ("node", "clock"):
            text = f"node {fault.target}"
        elif "server" in target:
            text = f"server {fault.target}"
        if fault.pairs:
            text += " " + " ".join(f"{s}-{n}" for s, n in fault.pairs)
        if fault.kind in ("drop", "hold", "half-close", "lag"):
            text += " to the server" if fault.way else " to the node"
        if fault.peer >= 0:
            text += f" of node {fault.peer}"
        if fault.amount:
            text += f" {fault.amount:+.4f}"
        return text.strip() + (" (2)" if fault.way and target == "node" else "")

    # ---- nodes --------------------------------------------------------------

    def pause(self, fault: Fault) -> Iterator[None]:
        return self._stopped(self.cluster.nodes[fault.target])

    @staticmethod
    def _stopped(*processes: Process) -> Iterator[None]:
        for process in processes:
            process.signal(signal.SIGSTOP)
        yield
        for process in processes:
            process.signal(signal.SIGCONT)

    def client_pause(self, fault: Fault) -> Iterator[None]:
        length_ms = max(1, int((fault.end - fault.begin) * 1000))
        self._ask(self.cluster.nodes[fault.target], "CLIENT", "PAUSE",
                  str(length_ms), "WRITE" if fault.way else "ALL")
        yield

    def script(self, fault: Fault) -> Iterator[None]:
        with Redis(self.cluster.nodes[fault.target]) as redis:
            redis.send("EVAL", BURN, "0", f"{fault.end - fault.begin:.3f}")
            yield

    def maxmemory(self, fault: Fault) -> Iterator[None]:
        node = self.cluster.nodes[fault.target]
        self._ask(node, "CONFIG", "SET", "maxmemory", "1")
        yield
        self._ask(node, "CONFIG", "SET", "maxmemory", "0")

    def maxclients(self, fault: Fault) -> Iterator[None]:
        # later none comes in
        with Redis(self.cluster.nodes[fault.target]) as redis:
            redis.ask("CONFIG", "SET", "maxclients", "1")
            redis.send("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            yield
            redis.ask("CONFIG", "SET", "maxclients", "10000")

    # ---- clocks -------------------------------------------------------------

    def step(self, fault: Fault) -> Iterator[None]:
        return self._shift(self.cluster.nodes[fault.target], fault.amount)

    def race(self, fault: Fault) -> Iterator[None]:
        return self._shift(self.cluster.nodes[fault.target], 0, fault.amount)

    def slew(self, fault: Fault) -> Iterator[None]:
        """Within the drift that is allowed, and never far from the truth."""
        clock = self.cluster.nodes[fault.target].clock
        before, rate = clock.offset_s(), fault.amount
        if abs(before) > 0.05:
            rate = -abs(rate) if before > 0 else abs(rate)
        clock.set(before, rate)
        yield
        clock.set(clock.offset_s())

    def glitch(self, fault: Fault) -> Iterator[None]:
        return self._witnessed_glitch(fault) if takes_locks(fault) else \
            self.step(fault)

    def _witnessed_glitch(self, fault: Fault) -> Iterator[None]:
        """All locks that end by the clock ahead are taken. One server sees
        that clock; the others hear of the node again when that server has
        revoked it, or when these locks would have ended anyway. Without such a
        server it is a loss like any other."""
        node = self.cluster.nodes[fault.target]
        before = node.clock.offset_s()
        others = [(s, n) for s, n in self._pairs(node)
                  if (s, n) not in fault.pairs]
        self._stall(others)
        try:
            calls = self._take_locks(fault, node, before)
            yield
            deadline = now() + SECOND
            while (is_unseen := self._count_batches(node) == calls):
                if now() > deadline:
                    break
                yield
            node.clock.set(before)
            if is_unseen:
                self._ask(node, "FLUSHALL")
            yield from until(lambda: not self._has_admission(node),
                             int(fault.amount * SECOND))
        finally:
            node.clock.set(before)
            self._unstall(others)

    def _take_locks(self, fault: Fault, node: Node, before: float) -> int:
        """How many batches had run before that."""
        self._stall(fault.pairs)
        self.cluster.proxy.sync()
        try:
            locks = self._keys(node)
            node.clock.set(before + fault.amount)
            self._ask(node, "EXISTS", *locks, "nothing")
            return self._count_batches(node)
        finally:
            self._unstall(fault.pairs)

    def server_clock(self, fault: Fault) -> Iterator[None]:
        return self._shift(self.cluster.servers[fault.target], fault.amount)

    @staticmethod
    def _shift(process: Process, ahead_s: float, rate: float = 0) -> Iterator[None]:
        """And back."""
        before = process.clock.offset_s()
        process.clock.set(before + ahead_s, rate)
        yield
        process.clock.set(before)

    # ---- servers ------------------------------------------------------------

    def server_pause(self, fault: Fault) -> Iterator[None]:
        return self._stopped(self.cluster.servers[fault.target])

    still = server_pause  # not for long: nobody takes it for dead

    def server_kill(self, fault: Fault) -> Iterator[None]:
        self._kill_server(fault.target)
        yield
        self._start_server(fault.target)

    # ---- everything at once -------------------------------------------------

    def suspend_all(self, _: Fault) -> Iterator[None]:
        return self._stopped(*self.cluster.nodes, *self.cluster.servers)

    def sleep_all(self, fault: Fault) -> Iterator[None]:
        """In either order, and nodes in good order: one that keeps nothing
        forgets, all others know what they knew."""
        servers = range(len(self.cluster.servers))
        if fault.way:
            self._stop_nodes()
        for server in servers:
            self._kill_server(server)
        if not fault.way:
            self._stop_nodes()
        yield
        for node in self.cluster.nodes:
            node.start()
        for server in servers:
            self._start_server(server)

    def _stop_nodes(self) -> None:
        for node in self.cluster.nodes:
            node.signal(signal.SIGTERM)
        for node in self.cluster.nodes:
            node.finish(5)

    def quiet(self, _: Fault) -> Iterator[None]:
        """Nobody asks for anything: what nodes know grows no older."""
        self.is_quiet = True
        yield
        self.is_quiet = False

    # ---- the network between them -------------------------------------------

    def cut(self, fault: Fault) -> Iterator[None]:
        self._stall(fault.pairs)
        yield
        self._unstall(fault.pairs)

    ring = cut

    def drop(self, fault: Fault) -> Iterator[None]:
        self._stall(fault.pairs, (fault.way,))
        yield
        self._unstall(fault.pairs, (fault.way,))

    def _tell(self, fault: Fault, command: str, *rest: int) -> None:
        for s, n in fault.pairs:
            self.cluster.proxy.tell(command, s, n, *rest)

    def delay(self, fault: Fault) -> Iterator[None]:
        for ms in (int(fault.amount) // 2 + 1, 0):
            for way in (0, 1):
                self._tell(fault, "delay", way, ms, ms)
            yield

    def lag(self, fault: Fault) -> Iterator[None]:
        for ms in (int(fault.amount), 0):
            self._tell(fault, "delay", fault.way, ms, ms // 10)
            yield

    def slice(self, fault: Fault) -> Iterator[None]:
        for is_on in (1, 0):
            self._tell(fault, "slice", is_on)
            yield

    def hold(self, fault: Fault) -> Iterator[None]:
        self._tell(fault, "hold", fault.way,
                   int((fault.end - fault.begin) * 1000))
        yield

    def reset(self, fault: Fault) -> Iterator[None]:
        self._tell(fault, "reset")
        yield

    def half_close(self, fault: Fault) -> Iterator[None]:
        self._tell(fault, "finish", fault.way)
        yield
