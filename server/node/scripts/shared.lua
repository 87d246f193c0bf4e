-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: what calls about shared
-- locks have in common.
--
-- The holders of a shared lock are a sorted set under its key: each member is a
-- token, with "~" behind its number; its score is the last millisecond of the
-- node's clock at which it holds the lock. So a member ends as a key would, and
-- the key ends with the last of them.
--
-- A token has a shared and an exclusive form, which differ in the byte behind
-- its number. Calls with the shared form find the exclusive one, too: a
-- downgrade replaces it, and may not have reached each node.
--
-- A bucket has two numbers: the highest of all grants, in the bucket's own field,
-- and the highest of a writer, which readers record beside it, as
-- "<number in the bucket>:<that number>". It counts while the first of them is what
-- the bucket has; otherwise a writer was granted since then, and the bucket has its
-- number.
--
-- A reader whose token has a key hash is also found by that: a hash with the key
-- hash in its name has, for each lock, the token of the reader who holds it, the
-- token with the highest number if there are several. So a repeat need not search
-- through all readers. The entry of a lock is a hint, and may be missing or old:
-- who holds the lock, the sorted set tells. The entry goes with the reader's part
-- of that lock: a forced release may leave the reader the other locks.
--
-- A function costs nearly as much as a command. So these are made once a batch,
-- and share.lua does without them if it is about one lock.
local is_shared
if string.find('eghpr', kind, 1, true) then
    is_shared = string.byte(ARGV[b], 17) == 126 -- "~"
end
-- A release reads its first lock here: with a value, it needs nothing of this.
local found = kind == 'r' and not is_shared and
    redis.pcall('GETRANGE', ARGV[a], '0', '255')
local has_key = false
if is_shared or kind == 'r' and (n > 1 or type(found) == 'table') then
    local number, rest = string.sub(ARGV[b], 1, 16), string.sub(ARGV[b], 18)
    exclusive, shared = number .. '.' .. rest, number .. '~' .. rest
    has_key = string.byte(shared, 58) == 43 -- "+"
end
if has_key and not with_key then
    local function place()
        return string.sub(state, 1, -#'state' - 1) .. 'repeat:' ..
            string.sub(shared, 59, 80)
    end

    -- The token with the key, of the latest reader of that lock, and where it is
    -- kept; false: none is known.
    with_key = function(lock)
        local at = place()
        local latest = redis.pcall('HGET', at, lock)
        return type(latest) == 'string' and latest, at
    end

    -- The token holds that lock until then, at least.
    remember = function(lock, ends_ms)
        local latest, at = with_key(lock)
        if latest and string.sub(latest, 1, 16) > string.sub(shared, 1, 16) then
            return
        end
        if latest ~= shared then
            redis.pcall('HSET', at, lock, shared)
        end
        local left = redis.pcall('PTTL', at)
        if type(left) == 'number' and left < ends_ms - now_ms then
            redis.pcall('PEXPIREAT', at, ends_ms)
        end
    end

    -- The token does not hold that lock any more.
    forget = function(lock)
        local latest, at = with_key(lock)
        if latest == shared then
            redis.pcall('HDEL', at, lock)
        end
    end
end
if shared and not settle and (kind ~= 'h' or n > 1) then
    -- Drops the members that have ended; the key ends with the last of the
    -- others. Returns whether a holder is left, or nil and the error.
    settle = function(lock)
        local last = redis.pcall('ZRANGE', lock, '0', '1', 'REV', 'WITHSCORES')
        if last.err then
            return nil, last
        end
        if not last[1] then -- mostly
            return false
        end
        local done = redis.pcall('ZREMRANGEBYSCORE', lock, '-inf',
            '(' .. now_ms)
        if type(done) ~= 'table' and last[2] + 0 >= now_ms then
            done = redis.pcall('PEXPIREAT', lock, last[2])
        end
        if type(done) == 'table' then
            return nil, done
        end
        return last[2] + 0 >= now_ms and last[1] ~= INTENT or
            last[3] ~= nil and last[4] + 0 >= now_ms
    end

    -- Adds the token, or lengthens its time. Returns the error if it cannot.
    join = function(lock, ends_ms)
        local added = redis.pcall('ZADD', lock, 'GT', ends_ms, shared)
        if type(added) == 'table' then
            return added
        end
        local _, refused = settle(lock)
        if refused and added == 1 then
            redis.pcall('ZREM', lock, shared)
        elseif not refused and string.byte(shared, 58) == 43 then
            remember(lock, ends_ms)
        end
        return refused
    end

    -- Drops the token from a lock that has it in either form. Returns 1 if it
    -- was there, or the error, and whether others hold the lock; 0: the lock is
    -- free or a shared one without it; nil: it is neither.
    leave = function(lock)
        local ends_ms = redis.pcall('ZSCORE', lock, shared)
        if type(ends_ms) == 'table' then
            if not string.find(ends_ms.err, '^WRONGTYPE') then
                return ends_ms
            end
            local value = redis.pcall('GETRANGE', lock, '0', '255')
            return value == exclusive and redis.pcall('DEL', lock) or nil
        end
        local dropped = ends_ms and redis.pcall('ZREM', lock, shared) or 0
        if dropped ~= 1 then
            return dropped
        end
        if string.byte(shared, 58) == 43 then
            forget(lock)
        end
        local has_others, refused = settle(lock)
        local is_ended = tonumber(ends_ms) < now_ms
        return refused or is_ended and 0 or 1, has_others
    end
end
if kind == 'p' and is_shared and not cannot_join then
    -- The reply if readers cannot hold a lock: it is held, or what somebody else
    -- keeps under its key has no tokens. nil: they can.
    cannot_join = function(lock)
        local last = redis.pcall('ZRANGE', lock, '0', '0', 'REV')
        if last.err and not string.find(last.err, '^WRONGTYPE') then
            return last
        end
        if last.err or last[1] and string.byte(last[1], 17) ~= 126 then
            return held(lock, redis.call('PTTL', lock))
        end
    end
end
