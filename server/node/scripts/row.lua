end -- of run

-- Rows of acquires and releases of one lock each, which are most calls:
--
--   a  ARGV  lock token ttl_ms slot
--      G | HELD pttl value | STALE highest | Q | L | S
--   r  ARGV  lock token
--      D | DELETED listeners | HELD pttl value | F | Q
--
-- They do what acquire.lua and release.lua do. But a command costs a node more
-- than all that is done around it, and a function nearly as much. So what they
-- read of the state is read at once before the first of them, what they write is
-- written at once after the last, and what they delete is deleted at once. As no
-- two of them are about one lock or one slot, this shows nowhere.
--
-- letters  of the calls, "a" (97) and "r" (114)
-- answers  to which theirs are added, after the first count
-- a        where their arguments begin
--
-- Returns where the next arguments begin, and whether an answer may be more than
-- a letter.
local function run_row(letters, answers, count, a)
    local try, sub = redis.pcall, string.sub
    local has_details = false
    local wanted, fields, b = {'admit', 'beat', 'listened_until'}, 3, a
    for i = 1, #letters do
        if letters[i] == 97 then -- a
            fields = fields + 1
            wanted[fields] = ARGV[b + 3]
            b = b + 4
        else
            b = b + 2
        end
    end

    local found = try('HMGET', state, unpack(wanted))
    local refusal -- of all acquires
    local can_ask, may_vote = true, true
    if fields > 3 then
        can_ask, may_vote = pcall(is_admitted, found[1])
    end
    if found.err then
        refusal, has_details = found, true
    elseif not can_ask then -- may_vote is the error
        refusal = type(may_vote) == 'table' and may_vote or {err = may_vote}
        has_details = true
    elseif not may_vote then
        -- A node that lost its memory has lost the admission with it.
        refusal = 'Q'
    elseif now > tonumber(deadline_us) then
        -- The command may have waited for minutes in the socket of a paused
        -- node. Its sender has given up and can no longer release the lock.
        refusal = 'L'
    end

    local window_us = tonumber(window_us)
    local slots, filled, locks, tokens, deletes = {}, 0, {}, {}, 0
    fields = 3
    for i = 1, #letters do
        local lock, token = ARGV[a], ARGV[a + 1]
        local reply = refusal
        if letters[i] == 114 then
            local value = try('GETRANGE', lock, '0', '255')
            if value == token then
                reply = 'D'
                deletes = deletes + 1
                locks[deletes], tokens[deletes] = lock, token
            else
                local pttl = try('PTTL', lock)
                if pttl == -2 then
                    -- It means something only if nothing was forgotten.
                    local ok, is_whole = pcall(is_admitted, found[1])
                    reply = ok and is_whole and 'F' or 'Q'
                else
                    reply, has_details = held(lock, pttl, value), true
                end
            end
            a = a + 2
        else
            fields = fields + 1
            if not refusal then
                local digits = sub(token, 1, 16)
                local number = tonumber(digits)
                local highest = tonumber(found[fields] or 0)
                if number - now > window_us or now - number > window_us then
                    -- A number far ahead of this clock would block the slot
                    -- for correct ones; one far below may be lower than a
                    -- number that this node has forgotten.
                    reply = 'S'
                else
                    local set = highest and highest < number and
                        try('SET', lock, token, 'NX', 'PX', ARGV[a + 2])
                    if set and set.ok then
                        -- Only now: a number that was not granted must not
                        -- make others stale.
                        reply = 'G'
                        slots[filled + 1] = ARGV[a + 3]
                        filled = filled + 2
                        slots[filled] = digits
                    else
                        -- Held; or free, but its slot has a higher number.
                        local pttl = set or highest and try('PTTL', lock) or
                            {err = 'ERR there is no number in the slot'}
                        reply = pttl == -2 and {'STALE', highest} or
                            held(lock, pttl)
                        has_details = true
                    end
                end
            end
            a = a + 4
        end
        answers[count + i] = reply
    end

    if deletes > 0 then
        local deleted = try('DEL', unpack(locks))
        local is_told = (tonumber(found[3]) or 0) > now
        if is_told or deleted ~= deletes then
            has_details = true
            local k = 0
            for i = count + 1, count + #letters do
                if answers[i] == 'D' then
                    k = k + 1
                    -- The node may deny its user one of the locks.
                    local one = deleted == deletes or try('DEL', locks[k])
                    if type(one) == 'table' then
                        answers[i] = one
                    elseif is_told then
                        answers[i] =
                            {'DELETED', announce(locks[k], tokens[k])}
                    end
                end
            end
        end
    end

    if filled > 0 then
        local written
        if beat == 0 then
            local kept = tonumber(found[2]) or 0
            beat = kept >= 0 and kept < 2^53 and kept + 1 or 1
            slots[filled + 1] = 'beat'
            slots[filled + 2] = string.format('%d', beat)
            if median_us ~= '0' then
                slots[filled + 3] = 'voted'
                slots[filled + 4] = median_us
            end
        end
        written = try('HSET', state, unpack(slots))
        if type(written) == 'table' then -- no grant without it
            has_details = true
            for i = count + 1, count + #letters do
                if answers[i] == 'G' then
                    answers[i] = written
                end
            end
        end
    end
    return a, has_details
end

