# SPDX-License-Identifier: MIT
"""Libraries that are not to be had here, replayed: what each sends to a node.

A wire form is read from the library's public source, which its comment names.
Where a library sends a script, the one here has the same effect in our words.
"""
import secrets

from clients import Answer
from nodes import NodeError


class Wire:
    """One lock of a library: what it sends to each node, and whether the reply
    counts as yes. What most libraries send is here."""
    name = version = ""
    key_prefix = ""
    is_single = False          # locks on one Redis, not on a majority
    has_ttl = True
    can_extend = True
    refusal = ""               # the error of an acquire while redlockd holds
    # what it does if too few nodes said yes
    gives_back = True          # of an acquire: releases what it got
    drops_unextended = False   # of an extend: releases the lock
    new_token = staticmethod(lambda: secrets.token_hex(20))
    # both reply 1, or 0 if the key is not the caller's
    RELEASE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('DEL', KEYS[1])"""
    EXTEND = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])"""

    def __init__(self):
        self.token = self.new_token()

    @staticmethod
    def quorum(nodes):
        return nodes // 2 + 1

    def acquire(self, node, key, ttl_ms):
        return node.do("SET", key, self.token, "NX", "PX", ttl_ms) == "OK"

    def extend(self, node, key, ttl_ms):
        return node.do("EVAL", self.EXTEND, 1, key, self.token, ttl_ms) == 1

    def release(self, node, key):
        return node.do("EVAL", self.RELEASE, 1, key, self.token) == 1


class Replay:
    """A client with the verbs of clients.Client. It sends an extend even if the
    lock should have ended by its own clock, which may be wrong."""

    def __init__(self, wire, nodes):
        self.wire = wire
        self.nodes = nodes
        self.locks = {}

    def acquire(self, resource, ttl_ms):
        lock = self.wire()
        answer = self._ask(lock, "acquire", resource, ttl_ms)
        if answer.said_yes:
            self.locks[resource] = lock
        elif lock.gives_back:
            self._ask(lock, "release", resource)
        return answer

    def extend(self, resource, ttl_ms):
        lock = self.locks[resource]
        answer = self._ask(lock, "extend", resource, ttl_ms)
        if not answer.said_yes and lock.drops_unextended:
            self._ask(lock, "release", resource)
        return answer

    def release(self, resource):
        return self._ask(self.locks[resource], "release", resource)

    def force_release(self, resource):
        return self._ask(self.wire(), "force_release", resource)

    def _ask(self, lock, verb, resource, *ttl_ms):
        votes, whys = 0, []
        for node in self.nodes:
            try:
                votes += getattr(lock, verb)(
                    node, lock.key_prefix + resource, *ttl_ms)
            except NodeError as error:  # counts as no
                whys.append(str(error))
        return Answer(votes >= lock.quorum(len(self.nodes)), 0, 0,
                      why=whys[0] if whys else f"{votes} nodes")
