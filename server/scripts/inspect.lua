-- Reads value and TTL of a lock.
--
-- ARGV  lock
-- HELD pttl value | FREE
local function inspect(a)
    local pttl = redis.call('PTTL', ARGV[a])
    if pttl == -2 then
        return 'FREE'
    end
    return held(pttl, read(ARGV[a]))
end

