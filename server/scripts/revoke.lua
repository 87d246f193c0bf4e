-- Takes the permission to vote from a node that lost a lock before its time.
--
-- ARGV  nonce spent
-- DONE | CHANGED
--
-- spent: a mark that had led to an admission. If it is back, an older memory
-- was put back under the same life. "": none.
local function revoke(a)
    if not is_admitted() and
        redis.call('HGET', KEYS[1], 'mark') ~= ARGV[a + 1] then
        return 'CHANGED'
    end
    local epoch, run_id = string.match(ARGV[1], '^(%d+):[^:]*:([^:]*)$')
    redis.call('HDEL', KEYS[1], 'admit')
    redis.call('HSET', KEYS[1],
        'mark', epoch .. ':' .. run_id .. ':' .. ARGV[a])
    admitted = false
    return 'DONE'
end

