-- Deletes a lock that still has the token, and announces it.
--
-- KEYS  lock
-- ARGV  token channel
-- DELETED now | HELD now pttl value | FREE now
--
-- No admission and no deadline: deleting what carries a token that is used
-- once is right at any time.

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- A token has at most 255 bytes: 256 bytes tell whether the whole value is
-- equal, and bound the reply.
local value = redis.pcall('GETRANGE', KEYS[1], 0, 255)
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
if type(value) == 'table' then -- an error: not a string, or no permission
    if not string.find(value.err, '^WRONGTYPE') then
        return value
    end
    value = ''
end
return {'HELD', now, pttl, value}
