-- Sets locks: all of them or none, with one token, and with one number that is
-- above those of all their slots.
--
-- ARGV  lock... token ttl_ms number deadline_us slot...
-- GRANTED | HELD pttl value | STALE highest | QUARANTINED | LATE | SKEWED
--
-- HELD and STALE tell of the first lock that cannot be set.
if kind == 'acquire' or kind == 'repeat' then
    -- A node that lost its memory has lost the admission with it: check first.
    if not is_admitted() then
        return 'QUARANTINED'
    end

    -- The command may have waited for minutes in the socket of a paused node.
    -- Its sender has given up and can no longer release the lock.
    if now > tonumber(ARGV[b + 3]) then
        return 'LATE'
    end

    -- A number far ahead of this clock would block the slot for correct ones;
    -- one far below may be lower than a number that this node has forgotten.
    local number = tonumber(ARGV[b + 2])
    if math.abs(number - now) > tonumber(ARGV[3]) then
        return 'SKEWED'
    end

    -- One lock at once; repeat.lua looks at several before it sets the first.
    if kind == 'acquire' and n == 1 then
        local highest =
            tonumber(redis.call('HGET', KEYS[1], ARGV[b + 4]) or 0)
        if highest < number and redis.call('SET', ARGV[a], ARGV[b], 'NX', 'PX',
            ARGV[b + 1]) then
            -- Only now: a number that was not granted must not make others
            -- stale.
            promise(ARGV[b + 4], ARGV[b + 2])
            return 'GRANTED'
        end

        -- Held; or free, but with a higher number accepted in its slot.
        local pttl = redis.call('PTTL', ARGV[a])
        if pttl == -2 then
            return {'STALE', highest}
        end
        return 'HELD', pttl, ARGV[a]
    end
end

