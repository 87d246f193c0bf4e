-- SPDX-License-Identifier: MIT
-- Part of the body of run(), which prelude.lua begins: release, "r".
--
-- Deletes the locks that still have the token, and announces each one while
-- servers listen. Of a shared lock it drops the token, and the last one deletes
-- the lock.
--
-- ARGV  lock... token; of one lock: as lock_at tells
-- D | DELETED listeners | HELD pttl value | F | Q
--
-- HELD reports the first lock with another value; only if there is none, F that
-- one is missing. An error of one lock is the reply, but the others are
-- deleted. listeners: the most that one announcement had.
--
-- No admission and no deadline: a token is used once, so deleting its keys is
-- right at any time.
if kind == 'r' then
    local refused, other, pttl, other_value, is_missing, listeners
    for i = a, a + n - 1 do
        local value, deleted, has_others = found, nil, nil
        if i > a and not is_shared then
            value = redis.pcall('GETRANGE', ARGV[i], '0', '255')
        end
        if value == ARGV[b] then
            deleted = redis.pcall('DEL', ARGV[i])
        elseif is_shared or type(value) == 'table' then
            deleted, has_others = leave(ARGV[i])
        end
        if type(deleted) == 'table' then -- no permission
            refused = refused or deleted
        elseif deleted == 1 then
            if not has_others and is_listened() then
                listeners =
                    math.max(listeners or 0, announce(ARGV[i], ARGV[b]))
            end
        elseif deleted == 0 and (is_shared or readers(ARGV[i]) == 0) then
            is_missing = true
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
        return held(other, pttl, other_value)
    end
    if is_missing then
        -- This means something only if the node has lost nothing.
        return is_admitted() and 'F' or 'Q'
    end
    return listeners and {'DELETED', listeners} or 'D'
end

