-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: replication, "p".
--
-- Sets locks on a node that lacks them, while a majority has them. A shared lock
-- gets the token beside others.
--
-- ARGV  lock... token ttl_ms bucket... missing tombstone_ms
-- G | HELD pttl value | C | Q | L | S
--
-- missing  which of the locks an extend found missing, as it answers: no other
--          one is set
--
-- A reader whose place a repeat has taken is not set either.
--
-- What it sets, it leaves a tombstone of the token for, which lasts for
-- tombstone_ms: another replication of the token may have found the lock missing
-- before, and come after its release. While it is there, nothing is set.
--
-- Locks that have the token stay as they are.
if kind == 'p' then
    if not is_admitted() then
        return 'Q'
    end
    local window_us, deadline_us = ARGV[2], ARGV[3]
    if now > tonumber(deadline_us) then
        return 'L'
    end

    -- The buckets take the token's number, which may be old, but must not be far
    -- ahead.
    local digits = string.sub(ARGV[b], 1, 16)
    local number = tonumber(digits)
    if number - now > tonumber(window_us) then
        return 'S'
    end

    local missing, may_be_missing = {}, tonumber(ARGV[b + 2 + n])
    local is_other = false
    -- Whether a repeat with the same key is there: it has replaced this reader,
    -- whose client knows that token now, and releases only that.
    local function is_replaced(lock)
        local latest = has_key and with_key(lock)
        local ends_ms = latest and (repeated(latest) or 0) > number and
            redis.call('ZSCORE', lock, latest)
        return ends_ms and ends_ms + 0 >= now_ms
    end
    for i = a, b - 1 do
        local is_there
        if is_shared then
            local refused = cannot_join(ARGV[i])
            if refused then
                return refused
            end
            local ends_ms = redis.call('ZSCORE', ARGV[i], shared)
            is_there = (tonumber(ends_ms) or 0) >= now_ms
        else
            local value = redis.pcall('GETRANGE', ARGV[i], '0', '255')
            local pttl = redis.call('PTTL', ARGV[i])
            is_there = pttl ~= -2 and
                not (type(value) == 'table' and readers(ARGV[i]) == 0)
            if is_there and value ~= ARGV[b] then
                return held(ARGV[i], pttl, value)
            end
        end
        if not is_there then
            missing[#missing + 1] = i
            is_other = is_other or
                math.floor(may_be_missing / 2 ^ (i - a)) % 2 == 0 or
                is_replaced(ARGV[i])
        end
    end
    if #missing == 0 then
        return 'G'
    end

    if is_other or redis.call('EXISTS', tombstone) ~= 0 then
        return 'C'
    end
    if is_short then
        return {err = OOM}
    end
    redis.call('HSET', tombstone, 'until', '')
    redis.call('PEXPIRE', tombstone, ARGV[b + 3 + n])

    for k, i in ipairs(missing) do
        local refused
        if is_shared then
            refused = join(ARGV[i], now_ms + ARGV[b + 1])
        else
            refused = redis.pcall('SET', ARGV[i], ARGV[b], 'PX', ARGV[b + 1])
            refused = refused.err and refused
        end
        if refused then
            redis.pcall('DEL', tombstone)
            for m = 1, k - 1 do
                if is_shared then
                    leave(ARGV[missing[m]])
                else
                    redis.pcall('DEL', ARGV[missing[m]])
                end
            end
            return refused
        end
    end
    -- A number only rises, and one that is none of ours stays.
    for _, i in ipairs(missing) do
        local bucket = ARGV[i + n + 2]
        local known = redis.call('HMGET', state, bucket, bucket .. 's', 'max_token')
        local highest, max_token = tonumber(known[1] or 0), tonumber(known[3])
        if highest and number > highest then
            promise(ARGV[b + 1], bucket, digits, max_token and number > max_token,
                is_shared and bucket .. 's',
                is_shared and digits .. ':' .. writer_in(known[2], highest))
        else
            promise(ARGV[b + 1])
        end
    end
    return 'G'
end

