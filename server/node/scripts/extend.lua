-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: extend, "e".
--
-- Lengthens the TTL of locks that all still have the token. With the shared form
-- of a token, a lock that has the exclusive one becomes a shared one.
--
-- ARGV  lock... token ttl_ms bucket...
-- E | HELD pttl value | HELD pttl value missing | FREE missing | Q | L
--
-- HELD reports the first lock with another value, FREE that there is none. A
-- lock that a writer only wants is free.
--
-- missing  which ones have not the token, for a replication: 1 for the first, 2 for
--          the second, 4 for the third …, added up. But where readers are, this
--          one may be among them in the other form. Of one lock HELD need not tell
--
-- It never creates a key: an expired lock may have had another holder since,
-- with a higher fencing token.
if kind == 'e' then
    if not is_admitted() then
        return 'Q'
    end
    local deadline_us = ARGV[3]
    if now > tonumber(deadline_us) then
        return 'L'
    end

    local pttl, other, missing = nil, nil, 0
    for i = a, b - 1 do
        local ends_ms = is_shared and redis.pcall('ZSCORE', ARGV[i], shared)
        if is_shared and type(ends_ms) ~= 'table' then
            if (tonumber(ends_ms) or 0) < now_ms then
                missing = missing + 2 ^ (i - a)
            end
        elseif is_shared and not string.find(ends_ms.err, '^WRONGTYPE') then
            return ends_ms
        else
            local value = redis.pcall('GETRANGE', ARGV[i], '0', '255')
            pttl = redis.call('PTTL', ARGV[i])
            local is_wanted = type(value) == 'table' and readers(ARGV[i]) == 0
            if pttl == -2 or is_wanted then
                missing = missing + 2 ^ (i - a)
            elseif value ~= (is_shared and exclusive or ARGV[b]) then
                other = other or held(ARGV[i], pttl, value)
                if type(value) ~= 'table' then
                    missing = missing + 2 ^ (i - a)
                end
            end
        end
    end
    if other then
        if n > 1 and not other.err then
            other[4] = missing
        end
        return other
    end
    if missing > 0 then
        return {'FREE', missing}
    end
    if tonumber(ARGV[b + 1]) == 0 then
        return 'E' -- only a check: it promises nothing, and makes nothing shared
    end

    local downgrade
    if is_shared then
        -- Makes a shared lock of an exclusive one, whose time is kept, and
        -- announces that, for readers that wait. Returns the error if it cannot.
        downgrade = function(lock, ends_ms)
            local kept_ms = redis.call('PEXPIRETIME', lock)
            redis.call('DEL', lock)
            local refused = join(lock, math.max(ends_ms, kept_ms))
            if refused and kept_ms >= 0 then
                redis.call('SET', lock, exclusive, 'PXAT', kept_ms)
            elseif refused then
                redis.call('SET', lock, exclusive)
            elseif is_listened() then
                announce(lock, shared)
            end
            return refused
        end
    end

    promise(ARGV[b + 1])
    for i = a, b - 1 do
        if is_shared then
            local refused = join(ARGV[i], now_ms + ARGV[b + 1])
            if refused and string.find(refused.err, '^WRONGTYPE') then
                refused = downgrade(ARGV[i], now_ms + ARGV[b + 1])
            end
            if refused then
                return refused
            end
        else
            pttl = n == 1 and pttl or redis.call('PTTL', ARGV[i])
            -- Only ever longer: a late, shorter extension must not take back
            -- what a later one promised. -1, no end, is longer than any.
            if pttl >= 0 and pttl < tonumber(ARGV[b + 1]) then
                redis.call('PEXPIRE', ARGV[i], ARGV[b + 1])
            end
        end
    end
    return 'E'
end

