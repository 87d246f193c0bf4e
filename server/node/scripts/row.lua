-- Functions of the script: run_row() does the work of run() for many acquires and
-- releases at once, and batch.lua calls it.

-- The numbers in the slots that stand in ARGV from first to last; 0: there is
-- none yet, nil: what is there is none.
local function read_slots(first, last)
    local numbers = redis.pcall('HMGET', state, unpack(ARGV, first, last))
    for i = 1, #numbers do
        numbers[i] = tonumber(numbers[i] or 0)
    end
    return numbers
end

-- The values of locks, false where there is none or another type; one by one if
-- the node denies its user MGET or one of them, which has an error then.
local function read_locks(first, last)
    local values = redis.pcall('MGET', unpack(ARGV, first, last))
    if values.err then
        values = {}
        for i = first, last do
            values[#values + 1] = redis.pcall('GETRANGE', ARGV[i], '0', '255')
        end
    end
    return values
end

-- The reply to an acquire whose lock was not set.
--
-- value    that the lock has, or the error at setting it; false: it was not
--          tried, as its slot has a number as high
-- highest  that number; nil: what is in the slot is none
local function not_set(lock, value, highest)
    local pttl = redis.pcall('PTTL', lock)
    if not highest then
        return {err = 'ERR there is no number in the slot'}
    end
    if pttl == -2 then
        return value or {'STALE', highest}
    end
    return held(lock, pttl, value or nil)
end

-- Rows of acquires and releases of one lock each, which are most calls:
--
--   a  ARGV  lock token ttl_ms
--      G | HELD pttl value | STALE highest | Q | L | S
--   r  its lock and token have places of their own
--      D | DELETED listeners | HELD pttl value | F | Q
--
-- They do what acquire.lua and release.lua do. But a command costs a node more
-- than all that is done around it, and a function nearly as much. So what they
-- read of the state is read at once before the first of them, what they write is
-- written at once after the last, and what they delete is read and deleted at
-- once. As no two of them are about one lock or one slot, this shows nowhere.
--
-- Much of the rest is the price of Lua: so what is used often is local, texts
-- become numbers by arithmetic, and no table is made that can be spared.
--
-- letters  of the calls: "a" (97) and "r" (114)
-- answers  to which theirs are added, after the first count
-- a        where the arguments of the acquires begin
--
-- Returns where the next arguments begin, and whether an answer may be more than
-- a letter.
local function run_row(letters, answers, count, a)
    local window_us, deadline_us = ARGV[2] + 0, ARGV[3] + 0
    local ARGV, try, sub = ARGV, redis.pcall, string.sub
    local has_details = false
    local acquires, first_slot = 0, slot_at + 1
    for i = 1, #letters do
        if letters[i] == 97 then -- a
            acquires = acquires + 1
        end
    end
    local releases, before = #letters - acquires, lock_at

    local found = try('HMGET', state, 'admit', 'beat', 'until', 'top', 'bar',
        'listened_until')
    local whole = not found.err and found
    local refusal -- of all acquires
    local can_ask, may_vote = true, true
    if acquires > 0 then
        can_ask, may_vote = pcall(is_admitted, whole)
    end
    if found.err then
        refusal, has_details = found, true
    elseif not can_ask then -- may_vote is the error
        refusal = type(may_vote) == 'table' and may_vote or {err = may_vote}
        has_details = true
    elseif not may_vote then
        -- A node that lost its memory has lost the admission with it.
        refusal = 'Q'
    elseif now > deadline_us then
        -- The command may have waited for minutes in the socket of a paused
        -- node. Its sender has given up and can no longer release the lock.
        refusal = 'L'
    end

    local top = tonumber(found[4]) or 2^53 -- unknown: above all numbers
    local bar = tonumber(found[5] or 0)
    bar = bar and bar >= 0 and bar or 2^53
    local new_top, top_digits, longest_ms = top, nil, 0
    local numbers -- in the slots, once one of them was to be read

    local values = releases > 0 and read_locks(before + 1, before + releases)
    local slots, filled, deletes = {}, 0, 0
    for i = 1, #letters do
        local reply = refusal
        if letters[i] == 114 then
            lock_at = lock_at + 1
            local value = values[lock_at - before]
            if value == ARGV[lock_at + token_offset] then
                reply = 'D'
                deletes = deletes + 1
            else
                local lock = ARGV[lock_at]
                local pttl = try('PTTL', lock)
                if pttl == -2 then
                    -- It means something only if nothing was forgotten.
                    local ok, is_whole = pcall(is_admitted, whole)
                    reply = ok and is_whole and 'F' or 'Q'
                else
                    reply, has_details = held(lock, pttl, value or nil), true
                end
            end
        else
            slot_at = slot_at + 1
            if not refusal then
                local lock, token = ARGV[a], ARGV[a + 1]
                local digits = sub(token, 1, 16)
                local number, highest = digits + 0, top
                if number - now > window_us or now - number > window_us then
                    -- A number far ahead of this clock would block the slot
                    -- for correct ones; one far below may be lower than a
                    -- number that this node has forgotten.
                    reply = 'S'
                else
                    if number <= top then
                        numbers = numbers or
                            read_slots(first_slot, first_slot + acquires - 1)
                        highest = numbers[slot_at - first_slot + 1]
                        if highest and highest < bar then
                            highest = bar
                        end
                    end
                    -- GET spares the table that SET answers OK with.
                    local is_above = highest and number > highest
                    local value = is_above and
                        try('SET', lock, token, 'NX', 'GET', 'PX', ARGV[a + 2])
                    if is_above and not value then
                        -- Only now: a number that was not granted must not
                        -- make others stale.
                        reply = 'G'
                        slots[filled + 1] = ARGV[slot_at]
                        filled = filled + 2
                        slots[filled] = digits
                        local ttl_ms = ARGV[a + 2] + 0
                        longest_ms = ttl_ms > longest_ms and ttl_ms or longest_ms
                        if number > new_top then
                            new_top, top_digits = number, digits
                        end
                    else
                        reply, has_details =
                            not_set(lock, value, highest), true
                    end
                end
            end
            a = a + 3
        end
        answers[count + i] = reply
    end

    if deletes > 0 then
        local deleted = deletes == releases and
            try('DEL', unpack(ARGV, before + 1, lock_at))
        local is_told = (tonumber(found[6]) or 0) > now
        if is_told or deleted ~= deletes then
            has_details = true
            local at = before
            for i = count + 1, count + #letters do
                if letters[i - count] == 114 then
                    at = at + 1
                end
                if answers[i] == 'D' then
                    -- The node may deny its user one of the locks.
                    local one = deleted == deletes or try('DEL', ARGV[at])
                    if type(one) == 'table' then
                        answers[i] = one
                    elseif is_told then
                        answers[i] = {'DELETED',
                            announce(ARGV[at], ARGV[at + token_offset])}
                    end
                end
            end
        end
    end

    if filled > 0 then
        local raised, until_us = beat, now + longest_ms * 1000
        if beat == 0 then
            local last = tonumber(kept[2]) or 0
            raised = last >= 0 and last < 2^53 and last + 1 or 1
            slots[filled + 1] = 'beat'
            slots[filled + 2] = string.format('%d', raised)
        end
        local known_us, promised_until = tonumber(kept[3]), kept[3]
        if not (known_us and known_us >= until_us and known_us < 2^53) then
            promised_until = string.format('%d',
                math.ceil(until_us / 100000) * 100000)
            slots[#slots + 1] = 'until'
            slots[#slots + 1] = promised_until
        end
        if top_digits then
            slots[#slots + 1] = 'top'
            slots[#slots + 1] = top_digits
        end
        local written = try('HSET', state, unpack(slots))
        if type(written) ~= 'table' then
            beat = raised
            kept[3] = promised_until
        else -- no grant without it
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

