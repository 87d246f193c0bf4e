# SPDX-License-Identifier: MIT
"""Permits: how many clients hold one of a pool at once."""
import time

from verdict import broken, holds
from wires import Replay, Wire
from world import NotPossible, World, try_until

LIMIT = 2
TTL_MS = 60000
# each node is in two of them, or in one
MAJORITIES = [(0, 1, 2), (2, 3, 4), (0, 1, 3)]


class RedlockSemaphore(Wire):
    """swarthy/redis-semaphore 44d22e8: src/redlockSemaphore/acquire.ts,
    src/semaphore/acquire/lua.ts. Each node counts the members of a sorted set,
    and a majority of nodes grants."""
    COUNT = """
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', ARGV[3] - ARGV[4])
if redis.call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then return 0 end
redis.call('ZADD', KEYS[1], ARGV[3], ARGV[1])
return redis.call('PEXPIRE', KEYS[1], ARGV[4])"""

    def acquire(self, node, key, ttl_ms):
        return node.do("EVAL", self.COUNT, 1, key, self.token, LIMIT,
                       int(time.time() * 1000), ttl_ms)

    def release(self, node, key):
        return node.do("ZREM", key, self.token)


def replayed(world):
    client = Replay(RedlockSemaphore, world.nodes)
    return lambda: client.acquire("pool", TTL_MS)


def served(world):
    server = world.start_server(max_ttl_ms=TTL_MS)
    world.settle()
    client = world.client_of([server.address])
    return lambda: try_until(
        lambda: client.ask("acquire", "pool", TTL_MS, 0, LIMIT), 0.5)


def let_in(library, play):
    """How many get a permit, each of a majority of its own: the other two nodes
    refuse writes meanwhile."""
    with World(library) as world:
        world.start_nodes()
        acquires = [play(world) for _ in MAJORITIES]
        count = 0
        for acquire, majority in zip(acquires, MAJORITIES):
            ill = [node for number, node in enumerate(world.nodes)
                   if number not in majority]
            for node in ill:
                node.do("CONFIG", "SET", "min-replicas-to-write", 1)
            answer = acquire()
            count += bool(answer and answer.said_yes)
            for node in ill:
                node.do("CONFIG", "SET", "min-replicas-to-write", 0)
            world.settle()
        return count


def story_61(library):
    """Permits are counted on each node, and a majority grants"""
    if not library.is_redlockd:
        raise NotPossible("it has no permits")
    counted, ours = let_in(library, replayed), let_in(library, served)
    seen = f"limit {LIMIT}: counting lets {counted} in, redlockd {ours}"
    if counted <= LIMIT or ours == 0:
        raise NotPossible(seen)
    return broken(seen) if ours > LIMIT else holds(seen)
