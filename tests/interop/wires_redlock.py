# SPDX-License-Identifier: MIT
"""Wire forms of libraries that lock on a majority of nodes."""
import base64
import secrets
import uuid

from wires import Wire
from wires_single import RLock


class RedlockRb(Wire):
    """leandromoreira/redlock-rb 2.0.6 (fbe2b28): lib/redlock/client.rb,
    scripts.rb. Extends by a SET over its own value, and re-creates a missing
    key."""
    name, version = "redlock-rb", "2.0.6"
    drops_unextended = True
    LOCK = """
local value = redis.call('GET', KEYS[1])
if value == ARGV[1] or not value then
    return redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
end"""
    new_token = staticmethod(lambda: str(uuid.uuid4()))

    def acquire(self, node, key, ttl_ms):
        return node.do("EVAL", self.LOCK, 1, key, self.token, ttl_ms) == "OK"

    extend = acquire


class RedlockRuby(Wire):
    """antirez/redlock-rb 0.0.1 (7fae7d8): lib/redlock.rb"""
    name, version = "antirez' redlock.rb", "0.0.1"
    can_extend = False


class RedlockPhp(Wire):
    """ronnylt/redlock-php 0dd2529: src/RedLock.php. Its quorum is not rounded:
    3.5 of five, so it needs four nodes."""
    name, version = "redlock-php", "0dd2529"
    can_extend = False
    new_token = staticmethod(lambda: secrets.token_hex(7)[:13])

    @staticmethod
    def quorum(nodes):
        return nodes / 2 + 1


class PhpLock2(Wire):
    """php-lock/lock 96cd2d8, 5fd6c54: classes/mutex/RedisMutex.php,
    SpinlockMutex.php. Its token is a number of 31 bits."""
    name, version = "php-lock `RedisMutex`", "before 3"
    key_prefix = "lock_"
    can_extend = False
    new_token = staticmethod(lambda: str(secrets.randbelow(2**31)))


class Redsync(Wire):
    """go-redsync/redsync 4 (88f6472): mutex.go, scripts.go"""
    name, version = "redsync", "4"
    new_token = staticmethod(lambda: base64.b64encode(secrets.token_bytes(16)).decode())


class RedsyncSetNx(Redsync):
    """The same with WithSetNXOnExtend: an extend re-creates a missing key."""
    name = "redsync, `SetNXOnExtend`"
    EXTEND = """
if redis.call('GET', KEYS[1]) == ARGV[1] then
    return redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) and 1 or 0"""


class RedissonRedLock(RLock):
    """redisson/redisson 3 (0482efe, 04607ef): RedissonRedLock.java,
    RedissonMultiLock.java. An RLock on each node, where an exception counts as
    refused."""
    name = "Redisson `RedissonRedLock`"
    is_single = False
    gives_back = True


class DistLock(Wire):
    """sbertrang/redis-distlock e6e3be9: lib/Redis/DistLock.pm. Its extend, of
    0.06, sets the key whoever has it; a failed acquire keeps what it got."""
    name, version = "Redis::DistLock", "0.06"
    gives_back = False
    new_token = staticmethod(lambda: base64.b64encode(secrets.token_bytes(24)).decode())

    def extend(self, node, key, ttl_ms):
        # in a script there, with the same effect
        return node.do("SET", key, self.token, "PX", ttl_ms) == "OK"


class RedlockCpp(Wire):
    """jacket-code/redlock-cpp 0845079: redlock-cpp/redlock.cpp. ContinueLock
    deletes the key if it has the old token, and sets a new one."""
    name, version = "redlock-cpp", "0845079"
    drops_unextended = True
    CONTINUE = """
if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return redis.call('SET', KEYS[1], ARGV[2], 'NX', 'PX', ARGV[3])"""

    def __init__(self):
        super().__init__()
        self.token = self.next_token = secrets.token_hex(20).upper()

    def extend(self, node, key, ttl_ms):
        reply = node.do("EVAL", self.CONTINUE, 1, key, self.token,
                        self.next_token, ttl_ms)
        return reply == "OK"


class RedlockCs(Wire):
    """KidFashion/redlock-cs 55b65ed: src/redlock-cs/Redlock.cs. The token is
    16 bytes, not text; StackExchange.Redis sends whole seconds as EX."""
    name, version = "redlock-cs", "55b65ed"
    can_extend = False
    new_token = staticmethod(lambda: uuid.uuid4().bytes_le)

    def acquire(self, node, key, ttl_ms):
        ttl = ("PX", ttl_ms) if ttl_ms % 1000 else ("EX", ttl_ms // 1000)
        return node.do("SET", key, self.token, *ttl, "NX") == "OK"


class RedLockNet(RedlockCs):
    """samcook/RedLock.net 2 (0d5cdf3, d440ad7): RedLockNet.SERedis/RedLock.cs,
    RedLockNet.SERedis.Shared/Lua/*.lua. Its timer extends at half of the
    TTL, and re-creates a missing key."""
    name, version = "RedLock.net", "2"
    key_prefix = "redlock:"
    can_extend = True
    EXTEND = """
local value = redis.call('GET', KEYS[1])
if value and value ~= ARGV[1] then return -1 end
if value then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
return 1"""
    new_token = staticmethod(lambda: str(uuid.uuid4()))


class NodeRedlock3(Wire):
    """mike-marcacci/node-redlock 3 (02eac99): redlock.js"""
    name, version = "node-redlock", "3"
    drops_unextended = True
    new_token = staticmethod(lambda: secrets.token_hex(16))


class NodeRedlock5(NodeRedlock3):
    """mike-marcacci/node-redlock 5 beta (09fd36a): src/index.ts. One or more
    keys in a script that looks at all before it sets the first."""
    name, version = "node-redlock", "5 beta"
    drops_unextended = False
    ACQUIRE = """
if redis.call('EXISTS', unpack(KEYS)) > 0 then return 0 end
for _, key in ipairs(KEYS) do
    redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
end
return #KEYS"""
    EXTEND = """
for _, key in ipairs(KEYS) do
    if redis.call('GET', key) ~= ARGV[1] then return 0 end
end
for _, key in ipairs(KEYS) do
    redis.call('SET', key, ARGV[1], 'PX', ARGV[2])
end
return #KEYS"""

    def acquire(self, node, key, ttl_ms):
        return node.do("EVAL", self.ACQUIRE, 1, key, self.token, ttl_ms) == 1


WIRES = [RedlockRb, RedlockRuby, RedlockPhp, PhpLock2, Redsync, RedsyncSetNx,
         RedissonRedLock, DistLock, RedlockCpp, RedlockCs, RedLockNet,
         NodeRedlock3, NodeRedlock5]
