-- Gives the node the permission to vote, at the end of its quarantine.
--
-- ARGV  mark max_ttl_ms durable
-- DONE | CHANGED
--
-- Only if the node was lost no other time since: each loss makes another mark.
-- So a command that lay in a paused node's socket does nothing.
local function admit(a)
    if redis.call('HGET', KEYS[1], 'mark') ~= ARGV[a] then
        return 'CHANGED'
    end
    redis.call('HSET', KEYS[1], 'durable', ARGV[a + 2])
    write_admission(ARGV[a + 1])
    return 'DONE'
end

