-- Sets a lock on a node that lacks it, while a majority has it.
--
-- ARGV  lock token ttl_ms number deadline_us slot seen
-- GRANTED | HELD pttl value | CHANGED | QUARANTINED | LATE | SKEWED
--
-- seen: the slot's number when an extend found no key here. Anything that set
-- the lock since then, a late acquire or another repair, has raised the number;
-- and a release may have deleted the lock after that.
if kind == 'repair' then
    if not is_admitted() then
        return 'QUARANTINED'
    end
    if now > tonumber(ARGV[a + 4]) then
        return 'LATE'
    end

    -- The slot takes the token's number, which may be old, but must not be far
    -- ahead.
    local number = tonumber(ARGV[a + 3])
    if number - now > tonumber(ARGV[3]) then
        return 'SKEWED'
    end

    local seen = tonumber(redis.call('HGET', KEYS[1], ARGV[a + 5]) or 0)
    if seen ~= tonumber(ARGV[a + 6]) then
        return 'CHANGED'
    end

    if redis.call('SET', ARGV[a], ARGV[a + 1], 'NX', 'PX', ARGV[a + 2]) then
        -- Always higher: the same repair, or another one that found no key
        -- here, then does nothing; nor does the acquire.
        local higher = number > seen and number or seen + 1
        redis.call('HSET', KEYS[1], ARGV[a + 5], string.format('%.0f', higher))
        return 'GRANTED'
    end
    pttl = redis.call('PTTL', ARGV[a])
end

