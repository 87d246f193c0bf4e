-- Reads value and TTL of a lock.
--
-- KEYS  lock
-- HELD now pttl value | FREE now

local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

local pttl = redis.call('PTTL', KEYS[1])
if pttl == -2 then
    return {'FREE', now}
end
local value = redis.pcall('GETRANGE', KEYS[1], 0, 255)
if type(value) == 'table' then -- an error: not a string, or no permission
    if not string.find(value.err, '^WRONGTYPE') then
        return value
    end
    value = ''
end
return {'HELD', now, pttl, value}
