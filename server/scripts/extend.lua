-- Lengthens the TTL of a lock that still has the token.
--
-- KEYS  state lock
-- ARGV  token ttl_ms admit deadline_us
-- EXTENDED now | HELD now pttl value | FREE now
-- QUARANTINED now | LATE now
--
-- It never creates the key: a lock that expired may have had another holder
-- since, with a higher fencing number.

if redis.call('HGET', KEYS[1], 'admit') ~= ARGV[3] then
    return {'QUARANTINED', now}
end
if now > tonumber(ARGV[4]) then
    return {'LATE', now}
end

local value = read(KEYS[2])
local pttl = redis.call('PTTL', KEYS[2])
if pttl == -2 then
    return {'FREE', now}
end

if value == ARGV[1] then
    -- Only ever longer: a late, shorter extension must not take back what a
    -- later one promised. -1, no end, is longer than any.
    if pttl >= 0 and pttl < tonumber(ARGV[2]) then
        redis.call('PEXPIRE', KEYS[2], ARGV[2])
    end
    return {'EXTENDED', now}
end

return held(pttl, value)
