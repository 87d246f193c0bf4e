# SPDX-License-Identifier: MIT
"""Rounds: late commands and replies, retries, paused and ill nodes."""
import time

from verdict import TTL_MS, broken, holds, two_holders
from world import MAX_TTL_MS, NotPossible, World, must, try_until


def story_1(library):
    """A late release of an earlier attempt deletes the live key"""
    with World(library) as world:
        world.start_nodes(proxied=True)
        a, b = world.client(), world.client()
        for attempt in range(4):
            verdict = late_release(world, a, b, f"r{attempt}")
            if verdict:
                return verdict
        return holds("no attempt after a broken one was granted in its call")


def late_release(world, a, b, resource):
    """None if the lock was not got within the call whose release is late."""
    last = world.proxies[2:]
    world.occupy(resource, world.nodes[2:])
    # the second message that names it: behind a lost acquire, its release
    rules = [proxy.break_at(resource, nth=2) for proxy in last]
    a.begin("acquire", resource, MAX_TTL_MS)
    for rule in rules:
        rule.broken.wait(1)
    world.vacate(resource, world.nodes[2:])
    first = a.answer(10)
    for proxy in last:
        proxy.rule = None
    if not first or not first.said_yes:
        if not world.library.is_redlockd:
            return None
        first = must(try_until(lambda: a.acquire(resource, MAX_TTL_MS), 5),
                     "A acquires after its nodes are back")
    for rule in rules:
        rule.deliver()
    time.sleep(0.1)
    left = world.holders(resource)
    second = try_until(lambda: b.acquire(resource, TTL_MS, limit_s=5), 0.5)
    found = two_holders(first, second, "the late release of attempt 1 left the "
                        f"key on {left} of 5 nodes")
    return found or holds(f"the key stayed on {left} nodes; B: {second}")


def story_2(library):
    """A paused node runs the acquire after it was given up"""
    with World(library) as world:
        nodes = world.start_nodes()
        a, b = world.client(), world.client()
        for node in nodes[2:]:
            node.pause()
        answer = a.acquire("r", TTL_MS, limit_s=1)
        if answer and answer.said_yes:
            return broken("granted by two of five")
        if not answer:
            a.leave()
        over = a.sent + TTL_MS / 1000 + 0.3
        time.sleep(max(0.0, over - time.monotonic()))
        for node in nodes[2:]:
            node.resume()
        time.sleep(0.5)
        left = world.holders("r")
        told = f"told {answer}" if answer else "gone after 1 s"
        if not left:
            return holds(f"A, {told}, has no key left")
        second = b.acquire("r", TTL_MS, limit_s=5)
        return broken(f"A, {told}, has the key on {left} of 5 nodes when its "
                      f"TTL has long passed; B: {second}")


def story_12(library):
    """A late reply is read as the next round's vote"""
    with World(library) as world:
        nodes = world.start_nodes(proxied=True)
        a, b = world.client(timeout_ms=100), world.client()
        # B holds on three nodes: one false vote is enough for A
        world.occupy("taken", nodes[3:])
        first = must(b.acquire("taken", MAX_TTL_MS), "B acquires")
        world.vacate("taken", nodes[3:])
        world.proxies[2].slow_replies_s.append(0.8)
        late = a.acquire("free", TTL_MS, limit_s=5)
        second = try_until(lambda: a.acquire("taken", TTL_MS, limit_s=5), 1)
        found = two_holders(first, second, "a late yes was counted again")
        return found or holds(f"one slow node: {late}; then, held by B: "
                              f"{second}")


def story_13(library):
    """One node with an error fails a round that has its quorum"""
    with World(library) as world:
        nodes = world.start_nodes()
        a = world.client()
        nodes[4].do("CONFIG", "SET", "min-replicas-to-write", 1)
        answer = a.acquire("error", TTL_MS, limit_s=5)
        if not answer or not answer.said_yes:
            return broken(f"one of five answers NOREPLICAS: {answer}; key left "
                          f"on {world.holders('error')} nodes")
        nodes[4].kill()
        dead = a.acquire("dead", TTL_MS, limit_s=5)
        if not dead or not dead.said_yes:
            return broken(f"one of five is dead: {dead or 'no answer in 5 s'}")
        return holds(f"NOREPLICAS: {answer}; dead: {dead}")


def story_15(library):
    """Partial locks are kept between attempts"""
    with World(library) as world:
        nodes = world.start_nodes()
        a = world.client()
        world.occupy("r", nodes[2:])
        a.begin("acquire", "r", MAX_TTL_MS)
        longest, since, answer = 0.0, None, None
        while not answer and time.monotonic() < a.sent + 10:
            there = nodes[0].get(library.key("r")) is not None
            now = time.monotonic()
            since = (since or now) if there else None
            longest = max(longest, now - since if since else 0)
            answer = a.answer(0.002)
        time.sleep(0.3)
        left = nodes[0].get(library.key("r")) is not None
        kept = f"kept its part for {int(longest * 1000)} ms at a time"
        if left:
            return broken(f"A, told {answer}, left its part behind")
        if longest > 0.09:
            return broken(f"A {kept}, through its attempts; {answer}")
        return holds(f"A {kept}; {answer}")


def story_21(library):
    """One paused node of five stalls every acquire"""
    limit_s, slow_ms = 4, 250  # the Redlock page: 5 to 50 ms a node
    with World(library) as world:
        nodes = world.start_nodes()
        a = world.client()
        nodes[4].pause()
        slowest = 0
        for number in range(4):
            answer = a.acquire(f"r{number}", TTL_MS, limit_s=limit_s)
            if not answer:
                return broken(f"acquire {number + 1}: no answer in {limit_s} s")
            if not answer.said_yes:
                return broken(f"acquire {number + 1}: {answer}")
            slowest = max(slowest, answer.elapsed_ms)
        if slowest > slow_ms:
            return broken(f"acquires take up to {slowest} ms")
        return holds(f"four acquires, the slowest took {slowest} ms")


def story_22(library):
    """A resource's name overwrites another's bookkeeping"""
    if not library.is_redlockd:
        raise NotPossible("it keeps nothing but the locks' keys")
    with World(library) as world:
        nodes = world.start_nodes()
        a = world.client()
        answer = a.acquire("redlockd:state", TTL_MS)
        kind = nodes[0].do("TYPE", "redlockd:state")
        if answer.said_yes or kind != "hash":
            return broken(f"redlockd:state is a {kind} now: {answer}")
        return holds(f"redlockd:state is refused: {answer}")
