-- Lengthens the TTL of a lock that still has the token.
--
-- ARGV  lock token ttl_ms deadline_us slot
-- EXTENDED | HELD pttl value | FREE highest | QUARANTINED | LATE
--
-- It never creates the key: an expired lock may have had another holder since,
-- with a higher fencing number. Where the key is missing, the reply carries the
-- slot's highest number, for a repair.
if kind == 'extend' then
    if not is_admitted() then
        return 'QUARANTINED'
    end
    if now > tonumber(ARGV[a + 3]) then
        return 'LATE'
    end

    value = redis.pcall('GETRANGE', ARGV[a], '0', '255')
    pttl = redis.call('PTTL', ARGV[a])
    if pttl == -2 then
        local highest = redis.call('HGET', KEYS[1], ARGV[a + 4]) or 0
        return {'FREE', tonumber(highest) or 0}
    end

    if value == ARGV[a + 1] then
        promise()
        -- Only ever longer: a late, shorter extension must not take back what
        -- a later one promised. -1, no end, is longer than any.
        if pttl >= 0 and pttl < tonumber(ARGV[a + 2]) then
            redis.call('PEXPIRE', ARGV[a], ARGV[a + 2])
        end
        return 'EXTENDED'
    end
end

