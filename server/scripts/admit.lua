-- Writes the permission to vote.
--
-- DONE
--
-- Only if it is not there: this comes every second, and a write would cost a
-- sync of the append-only file each time.
local function admit()
    if not is_admitted() then
        redis.call('HSET', KEYS[1], 'admit', ARGV[1])
        admitted = true
    end
    return 'DONE'
end

