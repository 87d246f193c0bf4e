-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: repeat, "g", and acquire
-- of several locks, "a".
--
-- Sets locks where the client may have them already, from an earlier request
-- with the same idempotency key: their values are replaced, as if they were
-- free. Acquires of several locks, which replace nothing, end here too.
--
-- ARGV  lock... token ttl_ms bucket... seen most
-- as acquire, which has checked admission, deadline and number; R, not G, if a
-- value was replaced
--
-- seen: a higher number is that of a later request of the client; most: of
-- shared locks, share.lua
if kind == 'g' or kind == 'a' then
    local token, ttl_ms = ARGV[b], tonumber(ARGV[b + 1])
    local digits = string.sub(token, 1, 16)
    local number = tonumber(digits)

    local min_token = tonumber(redis.call('HGET', state, 'min_token') or 0)
    min_token = min_token and min_token >= 0 and min_token or 2^53 -- unknown: above all numbers
    local replaced = {}
    for i = a, b - 1 do
        local pttl = redis.call('PTTL', ARGV[i])
        if pttl ~= -2 then
            local value = redis.pcall('GETRANGE', ARGV[i], '0', '255')
            local is_left = type(value) == 'table' and may_take(ARGV[i])
            if not is_left then
                pttl = redis.call('PTTL', ARGV[i])
                local old = kind == 'g' and repeated(value)
                if not old or old > tonumber(ARGV[b + 2 + n]) then
                    return held(ARGV[i], pttl, value)
                end
                replaced[i] = {value = value, pttl = pttl}
            end
        end
        local last = redis.call('HGET', state, ARGV[i + n + 2])
        local highest = math.max(tonumber(last or 0), min_token)
        if not (highest < number) then
            return {'STALE', highest}
        end
    end

    -- As it was: the node has refused to set one of the locks.
    local function restore(lock, before)
        if not before then
            redis.pcall('DEL', lock)
        elseif before.pttl == -1 then
            redis.pcall('SET', lock, before.value)
        else
            redis.pcall('SET', lock, before.value, 'PX',
                math.max(before.pttl, 1))
        end
    end

    local is_new = false
    for i = a, b - 1 do
        is_new = is_new or not replaced[i]
    end
    if not is_new then
        go_on_without_memory() -- it takes the room of what it replaces
    elseif is_short then
        return {err = OOM}
    end
    for i = a, b - 1 do
        -- An earlier promise to the client is kept.
        local left = replaced[i] and replaced[i].pttl or 0
        local reply = redis.pcall('SET', ARGV[i], token, 'PX',
            math.max(left, ttl_ms))
        if reply.err then
            for k = a, i - 1 do
                restore(ARGV[k], replaced[k])
            end
            return reply
        end
    end
    local max_token = tonumber(redis.call('HGET', state, 'max_token'))
    for i = b + 2, b + 1 + n do
        promise(ttl_ms, ARGV[i], digits, max_token and number > max_token)
    end
    return next(replaced) and 'R' or 'G'
end

