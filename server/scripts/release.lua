-- Deletes a lock that still has the token, and announces it.
--
-- ARGV  lock token channel
-- DELETED | HELD pttl value | FREE | QUARANTINED
--
-- No admission and no deadline: deleting what carries a token that is used
-- once is right at any time.
local function release(a)
    local value = read(ARGV[a])
    if value == ARGV[a + 1] then
        redis.call('DEL', ARGV[a])
        -- A user without channel rights has released all the same. The channel
        -- names the resource; the token is for nobody else.
        redis.pcall('PUBLISH', ARGV[a + 2], '1')
        return 'DELETED'
    end

    local pttl = redis.call('PTTL', ARGV[a])
    if pttl == -2 then
        return free()
    end
    return held(pttl, value)
end

