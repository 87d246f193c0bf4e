-- Stands in front of each of the other scripts.

-- The node's clock in microseconds. Like the fencing numbers it stays below
-- 2^53, where Lua's doubles and the conversion to a reply are exact.
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]

-- The first 256 bytes of a lock's value, or an error as a table. A token has
-- at most 255 bytes: so they tell whether the whole value is equal, and bound
-- the reply.
local function read(key)
    return redis.pcall('GETRANGE', key, 0, 255)
end

-- Held, by a key of any type; a foreign type has an empty value.
local function held(pttl, value)
    if type(value) == 'table' then -- not a string, or no permission
        if not string.find(value.err, '^WRONGTYPE') then
            return value
        end
        value = ''
    end
    return {'HELD', now, pttl, value}
end

