-- Deletes the locks that still have the token, and announces each one while
-- servers listen.
--
-- ARGV  lock... token
-- DELETED | DELETED listeners | HELD pttl value | FREE | QUARANTINED
--
-- HELD tells of the first lock with another value; only if there is none, FREE
-- that one is missing. listeners: the most that one announcement had.
--
-- No admission and no deadline: a token is used once, so deleting its keys is
-- right at any time.
if kind == 'release' then
    local kept, is_missing, listeners -- kept: the reply that tells of it
    for i = a, b - 1 do
        local value = redis.pcall('GETRANGE', ARGV[i], '0', '255')
        if value == ARGV[b] then
            local deleted = redis.pcall('DEL', ARGV[i])
            if listened == nil then
                local field = redis.pcall('HGET', KEYS[1], 'listened_until')
                listened = (tonumber(field) or 0) > now
            end
            if type(deleted) == 'table' then -- no permission; go on
                kept = kept or deleted
            elseif listened then
                local prefix = #KEYS[1] - #'redlockd:state'
                -- with the number, which shows whether it is old news
                listeners = math.max(listeners or 0,
                    announce(string.sub(ARGV[i], prefix + 1),
                        string.sub(value, 1, 16)))
            end
        else
            local pttl = redis.pcall('PTTL', ARGV[i])
            if pttl == -2 then
                is_missing = true
            elseif type(pttl) == 'table' then
                kept = kept or pttl
            else
                kept = kept or held(ARGV[i], pttl, value)
            end
        end
    end

    if kept then
        return kept
    end
    if is_missing then
        -- This means something only if the node has forgotten nothing.
        return is_admitted() and 'FREE' or 'QUARANTINED'
    end
    return listeners and {'DELETED', listeners} or 'DELETED'
end

