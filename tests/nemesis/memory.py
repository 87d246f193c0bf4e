# SPDX-License-Identifier: MIT
"""Faults that take a node's memory, replace it, or bring an older one back.

What redlockd leaves open (docs/internals/guarantees.md, What remains) cannot happen
here: a memory is only put back when what the node promised since was seen, and
the other nodes were told of it; and who evicts is looked at before it is asked
for another vote. Where this takes too long, the node loses all it has: that
must always be found.
"""
from __future__ import annotations

import contextlib
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from cluster import Cluster
from history import SECOND, now
from nodes import STATE, Node, Redis, Spare
from plan import SERVERS, Fault

TOLD_NODES = 3          # of four others; a server reads three of them
PATIENCE = 5 * SECOND
SYNCED = 15 * SECOND    # a replica is by then, on a busy machine, too
SILENT_S = 1            # a node is

Pairs = Iterable[tuple[int, int]]


def until(is_so: Callable[[], bool], patience: int) -> Iterator[None]:
    """Goes on when it is so, and in any case when that time is over."""
    over = now() + patience
    while now() < over and not is_so():
        yield


class MemoryFaults:
    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.stalls: Counter[tuple[int, int, int]] = Counter()

    # ---- lost whole ---------------------------------------------------------

    def kill_empty(self, fault: Fault) -> Iterator[None]:
        return self._killed(fault, Node.wipe)

    def kill_everysec(self, fault: Fault) -> Iterator[None]:
        return self._killed(fault, lambda node: node.lose_end(fault.way == 1))

    def kill_always(self, fault: Fault) -> Iterator[None]:
        return self._killed(fault, lambda node: None)

    def _killed(self, fault: Fault,
                lose: Callable[[Node], None]) -> Iterator[None]:
        node = self.cluster.nodes[fault.target]
        node.kill()
        lose(node)
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
        self._ask(self.cluster.nodes[fault.target], "FLUSHALL")
        yield

    # ---- replaced by another node's -----------------------------------------

    def replica(self, fault: Fault) -> Iterator[None]:
        """For a moment, which replaces nothing, or long enough."""
        node = self.cluster.nodes[fault.target]
        self._ask(node, "REPLICAOF",
                  *self.cluster.nodes[fault.peer].host_and_port())
        yield
        if fault.way:
            yield from self._wait_until_synced(node)
        self._ask(node, "REPLICAOF", "NO", "ONE")

    def peer_copy(self, fault: Fault) -> Iterator[None]:
        def replace(node: Node) -> None:
            node.wipe()
            copy_files(self.cluster.nodes[fault.peer].data, node.data)
        return self._killed(fault, replace)

    # ---- an older one of its own --------------------------------------------

    def old_copy(self, fault: Fault) -> Iterator[None]:
        """Put back at a restart, or by a server that has it: made the node's
        master for a moment."""
        node = self.cluster.nodes[fault.target]
        copy = node.directory / "copy"
        copy_files(node.data, copy)
        generation = self._beat(node)
        yield
        if fault.way:
            yield from self._restore_by_replication(node, copy, generation)
        else:
            node.kill()
            yield from self._wait_until_told(node, generation)
            node.wipe()
            if self._is_told(node, generation):
                copy_files(copy, node.data)
            node.start()
        shutil.rmtree(copy)

    def _restore_by_replication(self, node: Node, copy: Path,
                                generation: int) -> Iterator[None]:
        spare = Spare(node, copy)
        try:
            yield from self._wait_until_told(node, generation)
            if not self._is_told(node, generation):
                self._ask(node, "FLUSHALL")
                return
            self._ask(node, "REPLICAOF", *spare.host_and_port())
            yield from self._wait_until_synced(node)
            self._ask(node, "REPLICAOF", "NO", "ONE")
        finally:
            spare.kill()

    def aof_off(self, fault: Fault) -> Iterator[None]:
        """What it promises from now on does not survive it."""
        node = self.cluster.nodes[fault.target]
        self._ask(node, "CONFIG", "SET", "appendonly", "no")
        generation = self._beat(node)
        yield
        node.kill()
        yield from self._wait_until_told(node, generation)
        if not self._is_told(node, generation):
            node.wipe()
        node.start()

    # ---- in part ------------------------------------------------------------

    def evict(self, fault: Fault) -> Iterator[None]:
        """All locks, in the middle of a life or at the begin of one that is to
        be readmitted. No server is connected any more when that is over."""
        node = self.cluster.nodes[fault.target]
        self._stall(self._pairs(node))
        try:
            self.cluster.proxy.sync()
            if fault.way and node.mode == "always":
                node.kill()
                node.start()
                while not node.is_ready():
                    yield
            self._ask(node, "CONFIG", "SET", "maxmemory", "1",
                      "maxmemory-policy", "volatile-lru")
            yield
            yield from until(lambda: not self._keys(node), PATIENCE)
            self._ask(node, "CONFIG", "SET", "maxmemory", "0",
                      "maxmemory-policy", "noeviction")
            for pair in self._pairs(node):
                self.cluster.proxy.tell("reset", *pair)
        finally:
            self._unstall(self._pairs(node))
        yield from until(lambda: not self._has_admission(node), PATIENCE)
        if self._has_admission(node):
            self._ask(node, "FLUSHALL")

    # ---- what servers have seen ---------------------------------------------

    def _is_told(self, node: Node, generation: int) -> bool:
        """Enough of the other nodes were told of a later generation."""
        told = 0
        for other in self.cluster.nodes:
            if other is not node:
                with contextlib.suppress(OSError):  # down, or silent
                    told += self._number(other, f"w:{node.name_hash}",
                                         SILENT_S) > generation
        return told >= TOLD_NODES

    def _wait_until_told(self, node: Node, generation: int) -> Iterator[None]:
        return until(lambda: self._is_told(node, generation), PATIENCE)

    def _beat(self, node: Node) -> int:
        return self._number(node, "generation")

    def _has_admission(self, node: Node) -> bool:
        return b"$-1" not in self._ask(node, "HGET", STATE, "admit")

    @staticmethod
    def _number(node: Node, field: str, timeout_s: float = 5) -> int:
        """In the state; 0: it is not there."""
        with Redis(node, timeout_s) as redis:
            reply = redis.ask("HGET", STATE, field)
        found = re.search(rb"\r\n(\d+)\r\n", reply)
        return int(found[1]) if found else 0

    def _wait_until_synced(self, node: Node) -> Iterator[None]:
        return until(lambda: b"master_link_status:up" in self._ask(
            node, "INFO", "replication"), SYNCED)

    @staticmethod
    def _count_batches(node: Node) -> int:
        found = re.search(rb"cmdstat_evalsha:calls=(\d+)",
                          MemoryFaults._ask(node, "INFO", "commandstats"))
        return int(found[1]) if found else 0

    # ---- means --------------------------------------------------------------

    @staticmethod
    def _ask(node: Node, *words: str) -> bytes:
        with Redis(node) as redis:
            return redis.ask(*words)

    @staticmethod
    def _keys(node: Node) -> dict[str, int]:
        with Redis(node) as redis:
            return redis.keys()

    def _stall(self, pairs: Pairs, ways: tuple[int, ...] = (0, 1)) -> None:
        """A pair may be stalled by several faults at once."""
        for stall in [(s, n, way) for s, n in pairs for way in ways]:
            self.stalls[stall] += 1
            self.cluster.proxy.tell("stall", *stall, 1)

    def _unstall(self, pairs: Pairs, ways: tuple[int, ...] = (0, 1)) -> None:
        for stall in [(s, n, way) for s, n in pairs for way in ways]:
            self.stalls[stall] -= 1
            if not self.stalls[stall]:
                self.cluster.proxy.tell("stall", *stall, 0)

    @staticmethod
    def _pairs(node: Node) -> list[tuple[int, int]]:
        return [(server, node.index) for server in range(SERVERS)]


def copy_files(source: Path, target: Path) -> None:
    """Of a node that may be writing: what it appends meanwhile is in the copy
    or is not, and it may remove a file that it has rewritten."""
    if not source.exists():
        return
    while True:
        shutil.rmtree(target, ignore_errors=True)
        try:
            shutil.copytree(source, target)
            return
        except shutil.Error:
            continue
