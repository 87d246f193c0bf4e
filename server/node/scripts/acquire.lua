-- Sets a lock.
--
-- ARGV  lock token ttl_ms number deadline_us slot
-- GRANTED | HELD pttl value | STALE highest | QUARANTINED | LATE | SKEWED
if kind == 'acquire' then
    -- A node that lost its memory has lost the admission with it: check first.
    if not is_admitted() then
        return 'QUARANTINED'
    end

    -- The command may have waited for minutes in the socket of a paused node.
    -- Its sender has given up and can no longer release the lock.
    if now > tonumber(ARGV[a + 4]) then
        return 'LATE'
    end

    -- A number far ahead of this clock would block the slot for correct ones;
    -- one far below may be lower than a number that this node has forgotten.
    local number = tonumber(ARGV[a + 3])
    if math.abs(number - now) > tonumber(ARGV[3]) then
        return 'SKEWED'
    end

    local highest = tonumber(redis.call('HGET', KEYS[1], ARGV[a + 5]) or 0)
    if highest < number and
        redis.call('SET', ARGV[a], ARGV[a + 1], 'NX', 'PX', ARGV[a + 2]) then
        -- Only now: a number that was not granted must not make others stale.
        promise(ARGV[a + 5], ARGV[a + 3])
        return 'GRANTED'
    end

    -- Held by a key of any type, with or without TTL; or free, but with a
    -- higher number accepted in its slot.
    pttl = redis.call('PTTL', ARGV[a])
    if pttl == -2 then
        return {'STALE', highest}
    end
end

