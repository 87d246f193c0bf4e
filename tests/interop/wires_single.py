# SPDX-License-Identifier: MIT
"""Wire forms of locks on one Redis."""
import re
import secrets
import time
import uuid

from wires import Wire


class SingleWire(Wire):
    is_single = True
    gives_back = False


class RLock(SingleWire):
    """redisson/redisson 3 (4339c99): RedissonLock.java. A hash: the client and
    its thread, and how often it holds. It publishes each release too, and newer
    versions keep a latch under another key for a moment; neither touches the
    lock. On a string, HEXISTS fails, and the caller gets an exception."""
    name, version = "Redisson `RLock`", "3"
    refusal = "WRONGTYPE"
    ACQUIRE = """
if redis.call('EXISTS', KEYS[1]) == 1 and
    redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then
    return redis.call('PTTL', KEYS[1])
end
redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return false"""
    # what its watchdog sends
    EXTEND = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[2])"""
    RELEASE = """
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return false end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) > 0 then return 0 end
return redis.call('DEL', KEYS[1])"""
    new_token = staticmethod(lambda: f"{uuid.uuid4()}:1")

    def acquire(self, node, key, ttl_ms):
        return node.do("EVAL", self.ACQUIRE, 1, key, self.token,
                       ttl_ms) is None

    def force_release(self, node, key):  # forceUnlock
        return node.do("DEL", key) == 1


class LockTake(SingleWire):
    """StackExchange/StackExchange.Redis 2 (b0a07a7): RedisDatabase.cs. LockTake
    is a SET NX of the caller's value; LockExtend and LockRelease are
    transactions that depend on the value. Newer versions use the conditions
    that Redis 8.4 has instead."""
    name, version = "StackExchange `LockTake`", "2"

    def acquire(self, node, key, ttl_ms):
        ttl = ("PX", ttl_ms) if ttl_ms % 1000 else ("EX", ttl_ms // 1000)
        return node.do("SET", key, self.token, *ttl, "NX") == "OK"

    def extend(self, node, key, ttl_ms):
        return self._if_own(node, key, ("PEXPIRE", key, ttl_ms))

    def release(self, node, key):
        return self._if_own(node, key, ("DEL", key))

    def _if_own(self, node, key, command):
        with node.connected() as ask:
            ask("WATCH", key)
            if ask("GET", key) != self.token:
                return False
            ask("MULTI")
            ask(*command)
            return ask("EXEC") == [1]


class PhpLock3(SingleWire):
    """php-lock/lock 3 (ee72b43): src/Mutex/RedisMutex.php,
    src/Util/LockUtil.php"""
    name, version = "php-lock `RedisMutex`", "3"
    key_prefix = "php-malkusch-lock:"
    can_extend = False
    new_token = staticmethod(lambda: secrets.token_hex(32))


class SetNxTimestamp(SingleWire):
    """The lock of the Redis documentation on SETNX: the value is when it ends,
    in seconds. Who finds one that has ended takes it over with GETSET, if the
    old value is still one that has ended. No TTL. The holder deletes the key
    without looking, but not once its time is over."""
    name, version = "`SETNX` with a time, `GETSET`", "–"
    has_ttl = False
    can_extend = False

    @staticmethod
    def _has_ended(value):
        # as atof() and its like read it: as far as it is a number
        digits = re.match(r"\d+(\.\d+)?", value or "")
        return not digits or float(digits[0]) <= time.time()

    def acquire(self, node, key, ttl_ms):
        until = time.time() + ttl_ms / 1000 + 1
        self.token = f"{until:.3f}"
        return bool(
            node.do("SETNX", key, self.token) == 1
            or self._has_ended(node.do("GET", key))
            and self._has_ended(node.do("GETSET", key, self.token)))

    def release(self, node, key):
        return not self._has_ended(self.token) and node.do("DEL", key) == 1


class SetNxExpire(SingleWire):
    """SETNX, then EXPIRE; the release deletes the key without looking."""
    name, version = "`SETNX`, `EXPIRE`, `DEL`", "–"
    can_extend = False

    def acquire(self, node, key, ttl_ms):
        if node.do("SETNX", key, "1") != 1:
            return False
        return node.do("EXPIRE", key, -(-ttl_ms // 1000)) == 1

    def release(self, node, key):
        return node.do("DEL", key) == 1


class GetSet(SingleWire):
    """GETSET alone: sets the key, and holds if there was none. No TTL."""
    name, version = "`GETSET`, `DEL`", "–"
    has_ttl = False
    can_extend = False

    def acquire(self, node, key, ttl_ms):
        return node.do("GETSET", key, self.token) is None

    def release(self, node, key):
        return node.do("DEL", key) == 1


WIRES = [RLock, LockTake, PhpLock3, SetNxTimestamp, SetNxExpire, GetSet]
