-- Part of the body of run(), which prelude.lua begins: repair, "p".
--
-- Sets locks on a node that lacks them, while a majority has them. A shared lock
-- gets the token beside others.
--
-- ARGV  lock... token ttl_ms slot... seen
-- G | HELD pttl value | C | Q | L | S
--
-- seen: the slots' number when an extend found that a key is missing here.
-- Anything that set it since then, a late acquire or another repair, has raised
-- that number; and a release may have deleted the lock after that.
--
-- Of several locks, those that have the token stay as they are.
if kind == 'p' then
    if not is_admitted() then
        return 'Q'
    end
    local window_us, deadline_us = ARGV[2], ARGV[3]
    if now > tonumber(deadline_us) then
        return 'L'
    end

    -- The slots take the token's number, which may be old, but must not be far
    -- ahead.
    local number = tonumber(string.sub(ARGV[b], 1, 16))
    if number - now > tonumber(window_us) then
        return 'S'
    end

    local seen = number_of(b + 2)
    if seen ~= tonumber(ARGV[b + 2 + n]) then
        return 'C'
    end

    if is_shared then
        local missing = {}
        for i = a, b - 1 do
            local refused = cannot_join(ARGV[i])
            if refused then
                return refused
            end
            local ends_ms = redis.call('ZSCORE', ARGV[i], shared)
            if (tonumber(ends_ms) or 0) < now_ms then
                missing[#missing + 1] = i
            end
        end
        for k, i in ipairs(missing) do
            local refused = join(ARGV[i], now_ms + ARGV[b + 1])
            if refused then
                for m = 1, k - 1 do
                    leave(ARGV[missing[m]])
                end
                return refused
            end
        end
        for _, i in ipairs(missing) do
            record(ARGV[i + n + 2])
        end
        return 'G'
    end

    if n > 1 then
        for i = a, b - 1 do
            local value = redis.pcall('GETRANGE', ARGV[i], '0', '255')
            local pttl = redis.call('PTTL', ARGV[i])
            if pttl ~= -2 and value ~= ARGV[b] then
                return held(ARGV[i], pttl, value)
            end
        end
    end

    local set = {}
    for i = a, b - 1 do
        local reply = redis.pcall('SET', ARGV[i], ARGV[b], 'NX', 'PX',
            ARGV[b + 1])
        if reply and reply.err then
            for _, k in ipairs(set) do
                redis.pcall('DEL', ARGV[k])
            end
            return reply
        elseif reply then
            set[#set + 1] = i
        elseif n == 1 then
            return held(ARGV[i], redis.call('PTTL', ARGV[i]))
        end
    end

    local top = tonumber(redis.call('HGET', state, 'top'))
    for _, i in ipairs(set) do
        local slot = ARGV[i + n + 2]
        local highest = n == 1 and seen or
            tonumber(redis.call('HGET', state, slot) or 0)
        -- Always higher: the same repair, or another one that found no key
        -- here, then does nothing; nor does the acquire.
        local higher = number > highest and number or highest + 1
        local digits = string.format('%.0f', higher)
        local is_above = top and higher > top
        top = is_above and higher or top
        redis.call('HSET', state, slot, digits, is_above and 'top' or slot,
            digits)
    end
    return 'G'
end

