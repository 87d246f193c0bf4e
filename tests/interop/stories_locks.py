# SPDX-License-Identifier: MIT
"""One lock's life: extending, releasing, its numbers."""
import time

from verdict import TTL_MS, all_hold, broken, holds, no_number, two_holders
from world import (MAX_TTL_MS, NotPossible, World, must, try_until)


def needs_extend(library):
    if not library.can_extend:
        raise NotPossible("it cannot extend")


def story_3(library):
    """A late, shorter extend shortens the TTL"""
    needs_extend(library)
    short_ms = 500
    with World(library) as world:
        world.start_nodes(proxied=True)
        a, b = world.client(), world.client()
        must(a.acquire("r", MAX_TTL_MS), "A acquires")
        late = [proxy.break_at("r") for proxy in world.proxies[3:]]
        must(a.extend("r", short_ms), "A extends by little")
        for proxy in world.proxies:
            proxy.rule = None
        for proxy in world.proxies[:2]:
            proxy.break_at("r", count=100)  # with all that is sent again
        first = must(try_until(lambda: a.extend("r", MAX_TTL_MS), 2),
                     "A extends by much")
        for rule in late:
            rule.deliver()
        time.sleep(short_ms / 1000 + 0.1)
        for proxy in world.proxies:
            proxy.rule = None
        left = world.holders("r")
        second = try_until(lambda: b.acquire("r", TTL_MS, limit_s=5), 0.5)
        found = two_holders(first, second, "a late extend of 500 ms left the "
                            f"key on {left} of 5 nodes")
        return found or holds(f"the key stayed on {left} nodes; B: {second}")


def story_4(library):
    """Extend re-creates an expired key and counts it"""
    needs_extend(library)
    with World(library) as world:
        world.start_nodes()
        a, b = world.client(), world.client()
        must(a.acquire("r", 400), "A acquires")
        time.sleep(0.5)
        must(b.acquire("r", TTL_MS), "B acquires after A's TTL")
        b.release("r")
        again = a.extend("r", TTL_MS)
        if again and again.said_yes:
            return broken("A's lock had ended, B had held it since; "
                          f"A's extend: {again}")
        return holds(f"A's extend of an ended lock: {again}")


def failed_extend(library, setting, ill, well):
    """Three nodes refuse writes for the time of one extend."""
    with World(library) as world:
        nodes = world.start_nodes()
        a, b = world.client(), world.client()
        first = must(a.acquire("r", MAX_TTL_MS), "A acquires")
        time.sleep(0.05)  # for stragglers
        before = world.holders("r")
        for node in nodes[2:]:
            node.do("CONFIG", "SET", setting, ill)
        answer = a.extend("r", MAX_TTL_MS, limit_s=5)
        for node in nodes[2:]:
            node.do("CONFIG", "SET", setting, well)
        time.sleep(0.2)
        left = world.holders("r")
        what = f"{setting} {ill} on three nodes, extend: {answer}"
        if left < before:
            found = two_holders(first, b.acquire("r", TTL_MS, limit_s=5), what)
            return found or broken(f"{what}; key left on {left} of {before}")
        return holds(f"{what}; key left on {left}")


def story_16(library):
    """A failed extend destroys a valid lock"""
    needs_extend(library)
    return all_hold(
        lambda: failed_extend(library, "maxmemory", 1, 0),
        lambda: failed_extend(library, "min-replicas-to-write", 1, 0))


def story_17(library):
    """Releasing an expired lock takes seconds, or the next holder's"""
    with World(library) as world:
        world.start_nodes()
        a, b = world.client(), world.client()
        must(a.acquire("r", 300), "A acquires")
        time.sleep(0.4)
        must(b.acquire("r", MAX_TTL_MS), "B acquires after A's TTL")
        time.sleep(0.05)  # for stragglers
        answer = a.release("r", limit_s=5)
        left = world.holders("r")
        if left < 3:
            return broken(f"A's late release left B's key on {left} nodes")
        if not answer or answer.elapsed_ms > 1000:
            return broken(f"A's late release: {answer or 'no answer in 5 s'}")
        return holds(f"A's late release: {answer}")


def numbers(world, client, majorities):
    """One lock after the other, each on a majority of its own."""
    found = []
    for majority in majorities:
        others = [node for number, node in enumerate(world.nodes)
                  if number not in majority]
        world.occupy("r", others)
        answer = must(try_until(lambda: client.acquire("r", TTL_MS), 2),
                      f"A acquires on {majority}")
        world.vacate("r", others)
        client.release("r")
        time.sleep(0.05)
        found.append(answer.fence)
    return found


def rising(fences):
    if "none" in fences:
        return no_number("granted without a number")
    values = [int(fence) for fence in fences]
    told = " < ".join(fence[-9:] for fence in fences)
    if values != sorted(set(values)):
        return broken(f"numbers do not rise: {fences}")
    return holds(f"numbers rise: …{told}")


def story_8(library):
    """Fencing tokens over majorities that differ"""
    with World(library) as world:
        world.start_nodes()
        return rising(numbers(world, world.client(),
                              [(0, 1, 2), (2, 3, 4), (0, 1, 3), (1, 2, 4)]))


def story_9(library):
    """Fencing tokens over clocks that differ and a node that forgot"""
    with World(library) as world:
        nodes = world.start_nodes()
        a = world.client()
        for server in world.servers:
            server.clock.set(3600)
        fences = numbers(world, a, [(0, 1, 2)])
        if "none" in fences:
            return rising(fences)
        b = world.client()  # of a server whose clock is right
        nodes[2].restart_empty()
        world.settle()
        return rising(fences + numbers(world, b, [(2, 3, 4)]))
