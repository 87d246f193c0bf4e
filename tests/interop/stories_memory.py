# SPDX-License-Identifier: MIT
"""Nodes that forget: restarts, flushes, evictions, clocks, replicas."""
import time

from nodes import HOST, NodeError
from processes import end
from verdict import (TTL_MS, all_hold, b_tries, broken, hold_on_three, holds,
                     two_holders)
from world import DURABLE, NotPossible, World, must, try_until


def story_5(library):
    """A node restarts empty and votes"""
    with World(library) as world:
        world.start_nodes()
        first, b = hold_on_three(world)
        world.nodes[2].restart_empty()
        return b_tries(first, b, "a node came back empty")


def flushed(library):
    with World(library) as world:
        world.start_nodes()
        first, b = hold_on_three(world)
        world.nodes[2].do("FLUSHALL")
        return b_tries(first, b, "a node was flushed")


def replica_for_a_while(library):
    with World(library) as world:
        node = world.start_nodes()[2]
        other = world.extra_node()
        first, b = hold_on_three(world)
        node.do("REPLICAOF", HOST, other.port)
        lost = wait_for_loss(node, library.key("r"))
        node.do("REPLICAOF", "NO", "ONE")
        if not lost:
            raise NotPossible("the node did not become a replica in time")
        return b_tries(first, b, "a node was a replica for a moment")


def wait_for_loss(node, key):
    until = time.monotonic() + 1.2
    while node.get(key) and time.monotonic() < until:
        time.sleep(0.01)
    return not node.get(key)


def story_6(library):
    """FLUSHALL, or REPLICAOF and back"""
    return all_hold(lambda: flushed(library),
                    lambda: replica_for_a_while(library))


def clock_steps(library, step_s):
    """The key on that node ends so much too early, or at once."""
    with World(library) as world:
        node = world.start_nodes()[2]
        first, b = hold_on_three(world)
        node.clock.set(step_s)
        early = first.valid_until - min(step_s, TTL_MS / 1000) + 0.05
        time.sleep(max(0.0, early - time.monotonic()))
        return b_tries(first, b, f"a node's clock stepped by {step_s:g} s")


def story_11(library):
    """A node's clock steps forward"""
    return all_hold(lambda: clock_steps(library, 60),
                    lambda: clock_steps(library, 0.9))


def does_not_count(world, what):
    """Without that node three were not enough; the four others are."""
    a = world.clients[0]
    world.vacate("r", world.nodes[3:])
    answer = try_until(lambda: a.acquire("r", TTL_MS, limit_s=5), 2)
    if not answer or not answer.said_yes:
        return broken(f"granted neither by three nor without {what}: {answer}")
    return holds(f"{what} has no vote; by the four others: {answer}")


def evicted(library):
    with World(library) as world:
        nodes = world.start_nodes()
        world.voters = 4
        lossy = nodes[2]
        lossy.kill()
        lossy.start(maxmemory="4mb", maxmemory_policy="volatile-lru")
        try:
            first, b = hold_on_three(world)
        except NotPossible:
            return does_not_count(world, "the evicting node")
        fill(lossy, library.key("r"))
        return b_tries(first, b, "volatile-lru threw the key away")


def fill(node, key):
    """With what never expires, until the lock's key had to go."""
    for number in range(400):
        try:
            node.do("SET", f"filler:{number}", "x" * 20000)
        except NodeError:
            return  # full: nothing was left to evict
        if node.get(key) is None:
            return


def replica_resyncs(library):
    with World(library) as world:
        nodes = world.start_nodes()
        master = world.extra_node()

        def make_replica():
            nodes[2].kill()
            nodes[2].start(replicaof=f"{HOST} {master.port}",
                           replica_read_only="no")
            world.voters = 4
            world.settle()

        try:
            first, b = hold_on_three(world, before=make_replica)
        except NotPossible:
            return does_not_count(world, "the replica")
        # its master restarts: a full resync replaces what it has
        master.kill()
        master.start()
        wait_for_loss(nodes[2], library.key("r"))
        return b_tries(first, b, "a writable replica took its master's data")


def story_23(library):
    """A node that evicts, or is a replica, votes"""
    return all_hold(lambda: evicted(library),
                    lambda: replica_resyncs(library))


def story_28(library):
    """All nodes restart empty"""
    with World(library) as world:
        nodes = world.start_nodes()
        a, b = world.client(), world.client()
        first = must(a.acquire("r", TTL_MS), "A acquires")
        for node in nodes:
            node.kill()
        for node in nodes:
            node.restart_empty()
        second = try_until(lambda: b.acquire("r", TTL_MS, limit_s=2), 0.3)
        found = two_holders(first, second, "all nodes came back empty")
        if found:
            return found
        # one that has seen nothing of them, and is not told that they are new
        for server in world.servers:
            end(server.process)
        world.servers.clear()
        new = world.client(warm=False, first_start="auto")
        third = try_until(lambda: new.acquire("r", TTL_MS, limit_s=2),
                          first.valid_until - time.monotonic() - 0.2)
        found = two_holders(first, third, "all nodes came back empty, and "
                            "a new client")
        return found or holds(f"B: {second}; a new one: {third}")


def story_29(library):
    """A life without AOF between two with it"""
    with World(library) as world:
        nodes = world.start_nodes(DURABLE)
        a, b = world.client(), world.client()
        nodes[2].kill()
        nodes[2].start(appendonly="no")
        world.settle()
        world.occupy("r", nodes[3:])
        first = must(try_until(lambda: a.acquire("r", TTL_MS), 1),
                     "A acquires on three nodes")
        world.vacate("r", nodes[3:])
        nodes[2].kill()
        nodes[2].start(appendonly="yes")
        return b_tries(first, b, "the old AOF came back without the key")


def story_33(library):
    """The greatest TTL is lowered while long locks live"""
    if not library.is_redlockd:
        raise NotPossible("it has no greatest TTL, and no quarantine by it")
    long_ms = 16000
    with World(library) as world:
        nodes = world.start_nodes()
        old = world.start_server("--max-ttl-ms", str(long_ms))
        world.settle()
        a = world.client_of([old.address])
        world.occupy("r", nodes[3:])
        first = must(a.acquire("r", long_ms), "A acquires on three nodes")
        world.vacate("r", nodes[3:])
        old.process.kill()
        old.process.wait()
        world.servers.remove(old)
        new = world.start_server("--max-ttl-ms", "1000")
        b = world.client_of([new.address])
        nodes[2].restart_empty()
        # beyond the quarantine by the new TTL, within the lock's validity
        second = try_until(lambda: b.acquire("r", 1000, limit_s=2),
                           first.valid_until - time.monotonic() - 0.5)
        found = two_holders(first, second, "the lowered TTL's quarantine ended")
        if found:
            return found
        waited = int((time.monotonic() - first.at) * 1000)
        return holds(f"B was refused for {waited} of {long_ms} ms: {second}")


def story_14(library):
    """A quorum of the reachable nodes, or as a float"""
    with World(library) as world:
        nodes = world.start_nodes()
        a = world.client()
        world.occupy("three", nodes[3:])
        answer = a.acquire("three", TTL_MS)
        if not answer or not answer.said_yes:
            return broken(f"three of five are not enough: {answer}")
        for node in nodes[2:]:
            node.kill()
        answers = [a.acquire("two", TTL_MS, limit_s=3)]
        new = world.client(warm=False)
        answers.append(new.acquire("two", TTL_MS, limit_s=3))
        for answer in answers:
            if answer and answer.said_yes:
                return broken("granted by two of five, three are dead")
        return holds("three of five are enough; two, with three dead: "
                     + str(answers[0] or "no answer in 3 s"))
