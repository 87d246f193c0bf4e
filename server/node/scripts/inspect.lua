-- Reads value and TTL of a lock.
--
-- ARGV  lock
-- HELD pttl value | FREE | QUARANTINED
if kind == 'inspect' then
    pttl = redis.call('PTTL', ARGV[a])
    if pttl == -2 then
        -- This means something only if the node has forgotten nothing.
        return is_admitted() and 'FREE' or 'QUARANTINED'
    end
end

