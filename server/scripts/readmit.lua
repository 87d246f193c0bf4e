-- Gives the permission to vote back to a durable node that was restarted.
--
-- ARGV  admit beat max_ttl_ms         admit: as it was read, of its older life
-- DONE | CHANGED
--
-- Its memory is whole only if it was durable all the time, which the beat
-- tells: a life in between without the append-only file, a backup put back, a
-- sleep, and the beat is older than any lock may be.
local function readmit(a)
    local state = redis.call('HMGET', KEYS[1], 'admit', 'durable', 'beat')
    local beat = number_of(state[3])
    if state[1] ~= ARGV[a] or state[2] ~= '1' or
        beat < tonumber(ARGV[a + 1]) or beat > now or
        now - beat >= ARGV[a + 2] * 1000 then
        return 'CHANGED'
    end
    write_admission(ARGV[a + 2])
    return 'DONE'
end

