-- Deletes a lock that still has the token, and announces it while servers
-- listen.
--
-- ARGV  lock token
-- DELETED | DELETED listeners | HELD pttl value | FREE | QUARANTINED
--
-- No admission and no deadline: a token is used once, so deleting its key is
-- right at any time.
if kind == 'release' then
    value = redis.pcall('GETRANGE', ARGV[a], '0', '255')
    if value == ARGV[a + 1] then
        redis.call('DEL', ARGV[a])
        if listened == nil then
            local field = redis.pcall('HGET', KEYS[1], 'listened_until')
            listened = (tonumber(field) or 0) > now
        end
        if not listened then
            return 'DELETED'
        end
        local prefix = #KEYS[1] - #'redlockd:state'
        -- with the number, which shows whether it is old news
        return {'DELETED', announce(string.sub(ARGV[a], prefix + 1),
            string.sub(value, 1, 16))}
    end

    pttl = redis.call('PTTL', ARGV[a])
    if pttl == -2 then
        -- This means something only if the node has forgotten nothing.
        return is_admitted() and 'FREE' or 'QUARANTINED'
    end
end

