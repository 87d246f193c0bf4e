-- Deletes a lock that still has the token.
--
-- ARGV  lock token
-- DELETED | HELD pttl value | FREE | QUARANTINED
--
-- No admission and no deadline: a token is used once, so deleting its key is
-- right at any time.
if kind == 'release' then
    value = redis.pcall('GETRANGE', ARGV[a], '0', '255')
    if value == ARGV[a + 1] then
        redis.call('DEL', ARGV[a])
        return 'DELETED'
    end

    pttl = redis.call('PTTL', ARGV[a])
    if pttl == -2 then
        -- This means something only if the node has forgotten nothing.
        return is_admitted() and 'FREE' or 'QUARANTINED'
    end
end

