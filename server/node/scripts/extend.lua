-- Lengthens the TTL of locks that all still have the token.
--
-- ARGV  lock... token ttl_ms deadline_us slot...
-- EXTENDED | HELD pttl value | FREE seen | QUARANTINED | LATE
--
-- HELD tells of the first lock with another value; only if there is none, FREE
-- that one is missing.
--
-- It never creates a key: an expired lock may have had another holder since,
-- with a higher fencing number. Where a key is missing, the reply carries the
-- slots' number, for a repair.
if kind == 'extend' then
    if not is_admitted() then
        return 'QUARANTINED'
    end
    if now > tonumber(ARGV[b + 2]) then
        return 'LATE'
    end

    local pttl, is_missing
    for i = a, b - 1 do
        local value = redis.pcall('GETRANGE', ARGV[i], '0', '255')
        pttl = redis.call('PTTL', ARGV[i])
        if pttl == -2 then
            is_missing = true
        elseif value ~= ARGV[b] then
            return held(ARGV[i], pttl, value)
        end
    end
    if is_missing then
        return {'FREE', number_of(b + 3, n) or 0}
    end

    promise()
    for i = a, b - 1 do
        pttl = n == 1 and pttl or redis.call('PTTL', ARGV[i])
        -- Only ever longer: a late, shorter extension must not take back what
        -- a later one promised. -1, no end, is longer than any.
        if pttl >= 0 and pttl < tonumber(ARGV[b + 1]) then
            redis.call('PEXPIRE', ARGV[i], ARGV[b + 1])
        end
    end
    return 'EXTENDED'
end

