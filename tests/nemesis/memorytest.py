# SPDX-License-Identifier: MIT
"""Proves at the start of each run that the faults of memory.py do to real nodes
what they say, as far as servers allow it, and not further.
"""
from __future__ import annotations

import re
import time
from dataclasses import replace

from cluster import Cluster
from faults import Injector
from history import History
from nodes import STATE, Node, Redis
from plan import WITH_FILES, Fault


class Stage:
    """Nodes, each with a key of its own; and what is done to them."""

    def __init__(self, cluster: Cluster, quarantine_s: float) -> None:
        self.cluster = cluster
        self.injector = Injector(cluster, History(), quarantine_s, [])
        # one node of each sort that the plan might choose
        keeping = [node for node in cluster.nodes if node.mode in WITH_FILES]
        always = [node for node in cluster.nodes if node.mode == "always"]
        self.peer, self.always = always[:2]
        self.keeping = next(node for node in reversed(keeping)
                            if node is not self.peer)

    def prepare(self) -> None:
        for node in self.cluster.nodes:
            self.ask(node, "FLUSHALL")
            self.ask(node, "SET", "k", node.name)
            self.ask(node, "HSET", STATE, "generation", "5")

    def tell_others(self, node: Node) -> None:
        """That it was seen with a later generation than it has. No name is known yet:
        so that of each is empty."""
        for other in self.cluster.nodes:
            if other is not node:
                self.ask(other, "HSET", STATE, "w:", "6")

    def size(self, node: Node) -> int:
        """Of its log, once all is written that it was told: while a sync is
        under way, a busy node keeps that back for up to 2 s."""
        while self.info(node, "aof_buffer_length") != "0":
            time.sleep(0.01)
        return node.log_size()

    def finish(self, steps) -> None:
        for _ in steps:
            time.sleep(0.01)

    @staticmethod
    def ask(node: Node, *words: str) -> bytes:
        with Redis(node, 10) as redis:
            return redis.ask(*words)

    def key(self, node: Node, key: str = "k") -> str:
        """Empty: it is not there."""
        self.cluster.wait_for_nodes()
        lines = self.ask(node, "GET", key).decode().split("\r\n")
        return lines[1] if lines[0] != "$-1" else ""

    def info(self, node: Node, field: str) -> str:
        found = re.search(f"{field}:(\\w+)".encode(), self.ask(node, "INFO"))
        return found[1].decode() if found else ""


def test_replica(stage: Stage) -> None:
    node, peer = stage.keeping, stage.peer
    stage.prepare()
    life, memory = (stage.info(node, one) for one in ("run_id", "master_replid"))
    fault = Fault("replica", 0, 0, node.index, peer=peer.index)
    stage.finish(stage.injector.replica(fault))
    assert stage.info(node, "run_id") == life
    assert stage.info(node, "master_replid") != memory, "for a moment"
    stage.finish(stage.injector.replica(replace(fault, way=1)))
    assert stage.key(node) == peer.name, "long enough"
    assert stage.info(node, "run_id") == life
    assert stage.info(node, "role") == "master"


def test_peer_copy(stage: Stage) -> None:
    stage.prepare()
    stage.finish(stage.injector.peer_copy(Fault(
        "peer-copy", 0, 0, stage.keeping.index, peer=stage.peer.index)))
    assert stage.key(stage.keeping) == stage.peer.name


def test_old_memory(stage: Stage, node: Node, kind: str, way: int) -> None:
    """Only if the others were told, an older one is put back."""
    for is_told in (True, False):
        stage.prepare()
        life = stage.info(node, "run_id")
        begin = getattr(stage.injector, kind.replace("-", "_"))
        steps = begin(Fault(kind, 0, 0, node.index, way=way))
        next(steps)
        stage.ask(node, "SET", "k", "new")
        if is_told:
            stage.tell_others(node)
        stage.finish(steps)
        assert stage.key(node) == (node.name if is_told else ""), kind
        is_same_life = kind == "old-copy" and way == 1
        assert (stage.info(node, "run_id") == life) == is_same_life


def test_kill_everysec(stage: Stage) -> None:
    """What was not there at the last look is lost, or at one before it."""
    node = next(one for one in stage.cluster.nodes if one.mode == "everysec")
    for way, left in ((1, "one"), (0, node.name)):
        stage.prepare()
        node.sizes.clear()
        for value in ("one", "two"):
            stage.size(node)
            node.note_size()
            stage.ask(node, "SET", "k", value)
        # just now, however busy the machine is
        node.sizes = [(time.monotonic(), *rest) for _, *rest in node.sizes]
        stage.finish(stage.injector.kill_everysec(Fault(
            "kill-everysec", 0, 0, node.index, way=way)))
        assert stage.key(node) == left, way


def test_cut_log(stage: Stage) -> None:
    """All that it was told since then is lost, and nothing else."""
    node = next(one for one in stage.cluster.nodes if one.mode == "everysec")
    stage.prepare()
    stage.ask(node, "SET", "k", "one")
    size = stage.size(node)
    stage.ask(node, "SET", "k", "two")
    node.kill()
    node.cut_log(size)
    node.start()
    assert stage.key(node) == "one"


def test_evict(stage: Stage) -> None:
    node = stage.always
    for way in (0, 1):
        stage.prepare()
        life = stage.info(node, "run_id")
        stage.ask(node, "SET", "lock", "x", "PX", "60000")
        server = stage.cluster.connect(0, node)
        steps = stage.injector.evict(Fault("evict", 0, 0, node.index, way=way))
        next(steps)
        server.sendall(b"SET late 1\r\n")
        stage.finish(steps)
        try:
            assert not server.recv(1), "it answers"
        except ConnectionResetError:
            pass
        server.close()
        assert stage.key(node) == node.name, "without a time to live"
        assert not stage.key(node, "lock") and not stage.key(node, "late")
        assert stage.info(node, "evicted_keys") == "1"
        assert (stage.info(node, "run_id") == life) == (way == 0)


def test_glitch(stage: Stage) -> None:
    """What its time to live would not have ended is there no more; if no server
    saw the clock, nothing is."""
    node, pair = stage.always, (1, stage.always.index)
    for is_seen in (True, False):
        stage.prepare()
        for key, ms in (("short", "60000"), ("long", "600000")):
            stage.ask(node, "SET", key, "x", "PX", ms)
        steps = stage.injector.glitch(Fault(
            "glitch", 0, 0, node.index, (pair,), amount=100))
        next(steps)
        if is_seen:
            with stage.cluster.connect(1, node) as server:
                server.sendall(b"EVALSHA 0 0\r\n")
                assert b"NOSCRIPT" in server.recv(100)
        stage.finish(steps)
        assert abs(node.clock.offset_s()) < 1, "it is back"
        assert not stage.key(node, "short")
        assert bool(stage.key(node, "long")) == is_seen


def test_sleep_all(stage: Stage) -> None:
    for way in (0, 1):
        stage.prepare()
        steps = stage.injector.sleep_all(Fault("sleep-all", 0, 0, way=way))
        next(steps)
        assert not any(node.child for node in stage.cluster.nodes)
        stage.finish(steps)
        for node in stage.cluster.nodes:
            kept = "" if node.mode == "none" else node.name
            assert stage.key(node) == kept, node.mode
        for server in stage.cluster.servers:
            assert server.child
            server.kill()


def run(cluster: Cluster, quarantine_s: float) -> None:
    stage = Stage(cluster, quarantine_s)
    test_replica(stage)
    test_peer_copy(stage)
    for way in (0, 1):
        test_old_memory(stage, stage.keeping, "old-copy", way)
    test_old_memory(stage, stage.always, "aof-off", 0)
    test_kill_everysec(stage)
    test_cut_log(stage)
    test_evict(stage)
    test_glitch(stage)
    test_sleep_all(stage)
