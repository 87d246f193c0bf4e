-- Deletes the locks that still have the token, and announces each one while
-- servers listen.
--
-- ARGV  lock... token
-- DELETED | DELETED listeners | HELD pttl value | FREE | QUARANTINED
--
-- HELD tells of the first lock with another value; only if there is none, FREE
-- that one is missing. An error of one lock is the reply, but the others are
-- deleted. listeners: the most that one announcement had.
--
-- No admission and no deadline: a token is used once, so deleting its keys is
-- right at any time.
if kind == 'release' then
    local refused, other, pttl, other_value, is_missing, listeners
    for i = a, b - 1 do
        local value = redis.pcall('GETRANGE', ARGV[i], '0', '255')
        if value == ARGV[b] then
            local deleted = redis.pcall('DEL', ARGV[i])
            if listened == nil then
                local field = redis.pcall('HGET', KEYS[1], 'listened_until')
                listened = (tonumber(field) or 0) > now
            end
            if deleted ~= 1 then -- no permission
                refused = refused or deleted
            elseif listened then
                local prefix = #KEYS[1] - #'redlockd:state'
                -- with the number, which shows whether it is old news
                listeners = math.max(listeners or 0,
                    announce(string.sub(ARGV[i], prefix + 1),
                        string.sub(value, 1, 16)))
            end
        else
            local left = redis.pcall('PTTL', ARGV[i])
            if left == -2 then
                is_missing = true
            elseif type(left) == 'table' then
                refused = refused or left
            elseif not other then
                other, other_value, pttl = ARGV[i], value, left
            end
        end
    end

    if refused then
        return refused
    end
    if other then
        return 'HELD', pttl, other, other_value
    end
    if is_missing then
        -- This means something only if the node has forgotten nothing.
        return is_admitted() and 'FREE' or 'QUARANTINED'
    end
    return listeners and {'DELETED', listeners} or 'DELETED'
end

