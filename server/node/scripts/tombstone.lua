-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: the tombstone of a token,
-- a key beside which no replication sets it, in either form. It is a hash, so that
-- nobody takes it for a lock, and ends soon.
--
-- A forced release, "x", leaves one: a replication under way would bring the lock
-- back. Otherwise it is a release.
--
-- ARGV  lock... token tombstone_ms
--
-- A node without state gets none: it must go on to appear empty, and refuses each
-- replication. One that denies its user the tombstone deletes the lock all the same.
local tombstone
if kind == 'p' or kind == 'x' then
    tombstone = string.sub(state, 1, -#'state' - 1) .. 'tombstone:' ..
        string.sub(ARGV[b], 1, 16) .. '.' .. string.sub(ARGV[b], 18)
end
if kind == 'x' then
    if redis.call('EXISTS', state) == 1 then
        if is_oom(redis.pcall('HSET', tombstone, 'until', '')) then
            go_on_without_memory()
            redis.pcall('HSET', tombstone, 'until', '')
        end
        redis.pcall('PEXPIRE', tombstone, ARGV[b + 1])
    end
    kind = 'r'
end
