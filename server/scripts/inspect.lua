-- Reads value and TTL of a lock.
--
-- KEYS  lock
-- HELD now pttl value | FREE now

local pttl = redis.call('PTTL', KEYS[1])
if pttl == -2 then
    return {'FREE', now}
end
return held(pttl, read(KEYS[1]))
