"""Does the faults of a plan, undoes them, and notes when they were active.

Each kind is a generator: what stands before the yield begins the fault, what
stands behind it ends it.
"""
from __future__ import annotations

import signal
from collections import Counter
from collections.abc import Iterator

from cluster import Cluster, Redis
from history import SECOND, History, Span, now
from plan import KINDS, LOSSY_NODES, Fault

BURN = ("local begin = os.clock() while os.clock() - begin < tonumber(ARGV[1]) "
        "do end return 1")


class Injector:
    """To be used by the main thread only, as it starts processes."""

    def __init__(self, cluster: Cluster, history: History,
                 quarantine_s: float) -> None:
        self.cluster, self.history = cluster, history
        self.quarantine_s = quarantine_s
        self.active: dict[Fault, tuple[Iterator[None], Span]] = {}
        self.stalls: Counter[tuple[int, int, int]] = Counter()
        self.losses: list[tuple[int, Span]] = []
        self.restarting: list[Span] = []
        self.done: Counter[str] = Counter()

    def begin(self, fault: Fault) -> None:
        if KINDS[fault.kind].is_lossy and not self._may_lose(fault.target):
            self.done["left out"] += 1
            return
        span = Span(fault.kind, self._describe(fault))
        if fault.kind == "server-kill":
            span.server = fault.target
        if KINDS[fault.kind].is_lossy:
            self.losses.append((fault.target, span))
        self.history.spans.append(span)
        steps = getattr(self, fault.kind.replace("-", "_"))(fault)
        try:
            next(steps)
        except OSError as error:  # a node that answers no command of ours
            span.text += f" ({error})"
        self.active[fault] = (steps, span)
        self.done[fault.kind] += 1

    def end(self, fault: Fault) -> None:
        if fault not in self.active:
            return
        steps, span = self.active.pop(fault)
        try:
            next(steps, None)
        except OSError as error:
            span.text += f" ({error})"
        if span.server >= 0:
            self.restarting.append(span)
        else:
            span.end = now()

    def look(self) -> None:
        """What has to be noticed between faults."""
        for span in self.restarting[:]:
            if self.cluster.servers[span.server].listens():
                span.end = now()
                self.restarting.remove(span)
        for node in self.cluster.nodes:
            node.note_size()

    def heal(self) -> None:
        """Takes back what a node may not have heard, as it was too slow."""
        self.cluster.wait_for_nodes()
        for node in range(len(self.cluster.nodes)):
            self._ask(node, "CONFIG", "SET", "maxmemory", "0", "maxclients",
                      "10000")

    def kills(self) -> list[Span]:
        return [span for span in self.history.spans if span.server >= 0]

    def _may_lose(self, node: int) -> bool:
        """The plan took care of it, but this machine may be slow."""
        since = now() - int(self.quarantine_s * SECOND)
        nodes = {one for one, span in self.losses
                 if span.end == 0 or span.end > since}
        return len(nodes | {node}) <= LOSSY_NODES

    @staticmethod
    def _describe(fault: Fault) -> str:
        if fault.pairs:
            text = " ".join(f"{s}-{n}" for s, n in fault.pairs)
            if fault.kind in ("drop", "hold", "half-close"):
                text += " to the server" if fault.way else " to the node"
        else:
            text = "server " if "server" in fault.kind else "node "
            text += str(fault.target)
        return text + (f" {fault.amount:+.4f}" if fault.amount else "")

    # ---- nodes --------------------------------------------------------------

    def pause(self, fault: Fault) -> Iterator[None]:
        node = self.cluster.nodes[fault.target]
        node.signal(signal.SIGSTOP)
        yield
        node.signal(signal.SIGCONT)

    def kill_empty(self, fault: Fault) -> Iterator[None]:
        node = self.cluster.nodes[fault.target]
        node.kill()
        node.wipe()
        yield
        node.start()

    def kill_everysec(self, fault: Fault) -> Iterator[None]:
        node = self.cluster.nodes[fault.target]
        node.kill()
        node.lose_a_second()
        yield
        node.start()

    def kill_always(self, fault: Fault) -> Iterator[None]:
        node = self.cluster.nodes[fault.target]
        node.kill()
        yield
        node.start()

    def kill_old(self, fault: Fault) -> Iterator[None]:
        """A life without persistence, then the file of the life before it."""
        node = self.cluster.nodes[fault.target]
        node.kill()
        node.start("none")
        yield
        node.kill()
        node.start()

    def flush(self, fault: Fault) -> Iterator[None]:
        self._ask(fault.target, "FLUSHALL")
        yield

    def client_pause(self, fault: Fault) -> Iterator[None]:
        length_ms = max(1, int((fault.end - fault.begin) * 1000))
        self._ask(fault.target, "CLIENT", "PAUSE", str(length_ms),
                  "WRITE" if fault.way else "ALL")
        yield

    def script(self, fault: Fault) -> Iterator[None]:
        redis = Redis(self.cluster.nodes[fault.target])
        redis.send("EVAL", BURN, "0", f"{fault.end - fault.begin:.3f}")
        yield
        redis.close()

    def maxmemory(self, fault: Fault) -> Iterator[None]:
        self._ask(fault.target, "CONFIG", "SET", "maxmemory", "1")
        yield
        self._ask(fault.target, "CONFIG", "SET", "maxmemory", "0")

    def maxclients(self, fault: Fault) -> Iterator[None]:
        redis = Redis(self.cluster.nodes[fault.target])  # later none comes in
        redis.ask("CONFIG", "SET", "maxclients", "1")
        redis.send("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        yield
        redis.ask("CONFIG", "SET", "maxclients", "10000")
        redis.close()

    def _ask(self, node: int, *words: str) -> None:
        redis = Redis(self.cluster.nodes[node])
        try:
            redis.ask(*words)
        finally:
            redis.close()

    # ---- clocks -------------------------------------------------------------

    def step(self, fault: Fault) -> Iterator[None]:
        clock = self.cluster.nodes[fault.target].clock
        before = clock.offset_s()
        clock.set(before + fault.amount)
        yield
        clock.set(before)

    def race(self, fault: Fault) -> Iterator[None]:
        clock = self.cluster.nodes[fault.target].clock
        before = clock.offset_s()
        clock.set(before, fault.amount)
        yield
        clock.set(before)

    def slew(self, fault: Fault) -> Iterator[None]:
        """Within the drift that is allowed, and never far from the truth."""
        clock = self.cluster.nodes[fault.target].clock
        before, rate = clock.offset_s(), fault.amount
        if abs(before) > 0.05:
            rate = -abs(rate) if before > 0 else abs(rate)
        clock.set(before, rate)
        yield
        clock.set(clock.offset_s())

    def server_clock(self, fault: Fault) -> Iterator[None]:
        clock = self.cluster.servers[fault.target].clock
        clock.set(fault.amount)
        yield
        clock.set(0)

    # ---- servers ------------------------------------------------------------

    def server_pause(self, fault: Fault) -> Iterator[None]:
        server = self.cluster.servers[fault.target]
        server.signal(signal.SIGSTOP)
        yield
        server.signal(signal.SIGCONT)

    def server_kill(self, fault: Fault) -> Iterator[None]:
        server = self.cluster.servers[fault.target]
        server.kill()
        yield
        server.start()

    # ---- the network between them -------------------------------------------

    def _stall(self, fault: Fault, ways: tuple[int, ...]) -> Iterator[None]:
        """A pair may be stalled by several faults at once."""
        stalls = [(s, n, way) for s, n in fault.pairs for way in ways]
        for stall in stalls:
            self.stalls[stall] += 1
            self.cluster.proxy.tell("stall", *stall, 1)
        yield
        for stall in stalls:
            self.stalls[stall] -= 1
            if not self.stalls[stall]:
                self.cluster.proxy.tell("stall", *stall, 0)

    def ring(self, fault: Fault) -> Iterator[None]:
        return self._stall(fault, (0, 1))

    def cut(self, fault: Fault) -> Iterator[None]:
        return self._stall(fault, (0, 1))

    def drop(self, fault: Fault) -> Iterator[None]:
        return self._stall(fault, (fault.way,))

    def delay(self, fault: Fault) -> Iterator[None]:
        for ms in (int(fault.amount) // 2 + 1, 0):
            for s, n in fault.pairs:
                for way in (0, 1):
                    self.cluster.proxy.tell("delay", s, n, way, ms, ms)
            yield

    def slice(self, fault: Fault) -> Iterator[None]:
        for is_on in (1, 0):
            for s, n in fault.pairs:
                self.cluster.proxy.tell("slice", s, n, is_on)
            yield

    def hold(self, fault: Fault) -> Iterator[None]:
        length_ms = int((fault.end - fault.begin) * 1000)
        for s, n in fault.pairs:
            self.cluster.proxy.tell("hold", s, n, fault.way, length_ms)
        yield

    def reset(self, fault: Fault) -> Iterator[None]:
        for s, n in fault.pairs:
            self.cluster.proxy.tell("reset", s, n)
        yield

    def half_close(self, fault: Fault) -> Iterator[None]:
        for s, n in fault.pairs:
            self.cluster.proxy.tell("finish", s, n, fault.way)
        yield
