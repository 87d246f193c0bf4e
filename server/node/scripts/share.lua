-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: acquire of shared locks,
-- "h", and its repeat, "g".
--
-- Adds a holder to locks: to all of them or to none.
--
-- ARGV  h  as acquire, and behind it: most
--       g  as repeat, likewise
-- acquire.lua has checked admission, deadline and number; R, not G, if a holder
-- was replaced
--
-- Readers need a number above that of each writer, which STALE reports. SHARED: a
-- writer wants the lock, or most readers hold it already. Who replaces a
-- reader gets in all the same.
--
-- An acquire replaces nobody. A repeat replaces what is left of an earlier try of
-- its own request, too, which begins as its token does behind the number: where
-- such a try had replaced a reader, it was not undone, and nobody else would
-- release it. So the answer is R then, too: the try may stand in the place of a
-- reader whose client still relies on it, which this node cannot tell.
--
-- A repeat does not join another reader with its key. That one belongs to another
-- request, which is under way as well, or to a repeat that is later than this one:
-- the next repeat could replace only one of the two. SHARED then has its number
-- behind the others.
--
-- most  0: only who replaces a reader gets in
if kind == 'h' or kind == 'g' and is_shared then
    local number, ttl_ms = tonumber(string.sub(shared, 1, 16)), ARGV[b + 1]
    local seen = kind == 'g' and tonumber(ARGV[b + 2 + n])
    local most = tonumber(ARGV[b + 2 + (kind == 'g' and n + 1 or
        n > 1 and n or 0)])
    local replaced, ends, lasts, is_repeated = {}, {}, {}, false
    local max_token, buckets, numbers, of_writers = nil, {}, {}, {}
    local is_new = false
    for i = a, b - 1 do
        local last = redis.pcall('ZRANGE', ARGV[i], '0', '0', 'REV',
            'WITHSCORES')
        if last.err and not string.find(last.err, '^WRONGTYPE') then
            return last
        end
        if last.err or last[1] and string.byte(last[1], 17) ~= 126 then
            return held(ARGV[i], redis.call('PTTL', ARGV[i]))
        end
        local bucket = kind == 'h' and n == 1 and ARGV[s] or ARGV[b + 2 + i - a]
        local known = redis.call('HMGET', state, bucket, bucket .. 's', 'min_token', 'max_token')
        local highest, min_token = tonumber(known[1] or 0), tonumber(known[3] or 0)
        local writers = writer_in(known[2], highest)
        local least = math.max(writers, min_token and min_token >= 0 and min_token or 2^53)
        if not (number > least) then
            return {'STALE', least}
        end
        max_token, buckets[i] = tonumber(known[4]), bucket
        numbers[i], of_writers[i] = highest, writers
        lasts[i], ends[i], replaced[i] = last[2], now_ms + ttl_ms, false
        local earlier = kind == 'g' and has_key and with_key(ARGV[i])
        local old = earlier and earlier ~= shared and repeated(earlier)
        local left_ms = old and redis.call('ZSCORE', ARGV[i], earlier)
        local other -- the number of a reader that is in its way
        if left_ms and left_ms + 0 >= now_ms then
            local is_own = old < number and string.sub(earlier, 18, 37) ==
                string.sub(shared, 18, 37)
            if old <= seen or is_own then
                -- An earlier promise to the client is kept.
                ends[i], replaced[i] = math.max(ends[i], left_ms), earlier
                is_repeated = true
            else
                other = old
            end
        end
        is_new = is_new or not replaced[i]
        if not replaced[i] then
            local intent = last[1] and redis.call('ZSCORE', ARGV[i], INTENT)
            local is_wanted = intent and intent + 0 >= now_ms
            local holders = (other or is_wanted or most == 0 or last[1] and
                redis.call('ZCOUNT', ARGV[i], now_ms, '+inf') >= most) and
                readers(ARGV[i])
            if holders or other or most == 0 then
                return {'SHARED', math.max(0, redis.call('PTTL', ARGV[i])),
                    math.max(1, holders or 0), other}
            end
        end
    end

    if not is_new then
        go_on_without_memory() -- it takes the room of what it replaces
    elseif is_short then
        return {err = OOM}
    end
    local added = {} -- what a refusal undoes
    for i = a, b - 1 do
        local refused = redis.pcall('ZADD', ARGV[i], 'GT', ends[i], shared)
        added[i] = refused == 1
        if type(refused) ~= 'table' and lasts[i] then -- those that have ended
            refused = redis.pcall('ZREMRANGEBYSCORE', ARGV[i], '-inf',
                '(' .. now_ms)
        end
        if type(refused) ~= 'table' then
            refused = redis.pcall('PEXPIREAT', ARGV[i], math.max(ends[i],
                lasts[i] or 0))
        end
        if type(refused) == 'table' then -- an ACL, or no memory
            if added[i] then
                redis.pcall('ZREM', ARGV[i], shared)
            end
            for k = a, i - 1 do
                if added[k] then
                    leave(ARGV[k])
                end
            end
            return refused
        end
    end
    for i = a, b - 1 do
        if replaced[i] then
            redis.call('ZREM', ARGV[i], replaced[i])
        end
        if has_key then
            remember(ARGV[i], ends[i])
        end
        -- Readers have no order among themselves: a lower number stays below
        -- that in the bucket, which only rises.
        if number > numbers[i] then
            local digits = string.sub(shared, 1, 16)
            promise(ttl_ms, buckets[i], digits, max_token and number > max_token,
                buckets[i] .. 's', digits .. ':' .. of_writers[i])
        else
            promise(ttl_ms)
        end
    end
    return is_repeated and 'R' or 'G'
end

