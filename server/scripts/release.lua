-- Deletes a lock that still has the token, and announces it.
--
-- KEYS  lock
-- ARGV  token channel
-- DELETED now | HELD now pttl value | FREE now
--
-- No admission and no deadline: deleting what carries a token that is used
-- once is right at any time.

local value = read(KEYS[1])
if value == ARGV[1] then
    redis.call('DEL', KEYS[1])
    -- A user without channel rights has released all the same. The channel
    -- names the resource; the token is for nobody else.
    redis.pcall('PUBLISH', ARGV[2], '1')
    return {'DELETED', now}
end

local pttl = redis.call('PTTL', KEYS[1])
if pttl == -2 then
    return {'FREE', now}
end
return held(pttl, value)
