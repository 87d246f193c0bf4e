-- SPDX-License-Identifier: MIT
-- Functions of the script: run_row() does the work of run() for many acquires and
-- releases at once, and batch.lua calls it.

-- The numbers in the buckets that stand in ARGV from first to last; 0: there is
-- none yet, nil: what is there is none.
local function read_buckets(first, last)
    local numbers = redis.pcall('HMGET', state, unpack(ARGV, first, last))
    for i = 1, #numbers do
        numbers[i] = tonumber(numbers[i] or 0)
    end
    return numbers
end

-- The highest number of a writer in each of these buckets, as texts: shared.lua.
local function read_writers(first, last, numbers)
    local fields = {}
    for i = first, last do
        fields[#fields + 1] = ARGV[i] .. 's'
    end
    local writers = redis.pcall('HMGET', state, unpack(fields))
    for i = 1, #writers do
        writers[i] = writer_in(writers[i], numbers[i] or 0)
    end
    return writers
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
--          tried, as its bucket has a number as high
-- highest  that number; nil: what is in the bucket is none
local function not_set(lock, value, highest)
    local pttl = redis.pcall('PTTL', lock)
    if not highest then
        return {err = 'ERR there is no number in the bucket'}
    end
    if pttl == -2 then
        return value or {'STALE', highest}
    end
    if is_oom(value) then -- what keeps it out says more, if there is something
        local reply = held(lock, pttl)
        local is_free = reply[3] == '' and readers(lock) == 0
        return is_free and value or reply
    end
    return held(lock, pttl, value or nil)
end

-- Gives a reader a lock that is free. Returns G, or the error; nil: it is not free.
local function join_free(lock, token, ttl_ms)
    local is_there = redis.pcall('EXISTS', lock)
    if is_there ~= 0 then
        return type(is_there) == 'table' and is_there or nil
    end
    local ends_ms = now_ms + ttl_ms
    local added = is_short and {err = OOM} or
        redis.pcall('ZADD', lock, ends_ms, token)
    local set = added == 1 and redis.pcall('PEXPIREAT', lock, ends_ms)
    if type(set) == 'table' then -- the node denies its user a lock
        redis.pcall('ZREM', lock, token)
    end
    return set == 1 and 'G' or set or added
end

-- Whether the reader with this token, which has no key, has the lock, and nobody
-- else has it or wants it.
local function is_alone(lock, token)
    local two = redis.pcall('ZRANGE', lock, '0', '1', 'WITHSCORES')
    return two[1] == token and not two[3] and string.byte(token, 58) ~= 43 and
        two[2] + 0 >= now_ms
end

-- Rows of acquires and releases of one lock each, which are most calls:
--
--   a  ARGV  lock token ttl_ms
--      G | HELD pttl value | STALE highest | Q | L | S
--   h  ARGV  lock token ttl_ms most; of readers
--      G | HELD pttl value | SHARED pttl holders | STALE highest | Q | L | S
--   r  its lock and token have places of their own
--      D | DELETED listeners | HELD pttl value | F | Q
--
-- They do what acquire.lua, share.lua and release.lua do. But a command costs a
-- node more than all that is done around it, and a function nearly as much. So
-- what they read of the state is read at once before the first of them, what they
-- write is written at once after the last, and what they delete is read and
-- deleted at once. As no two of them are about one lock or one bucket, this shows
-- nowhere. Only what readers do where others are is left to these files.
--
-- Much of the rest is the price of Lua: so what is used often is local, texts
-- become numbers by arithmetic, and no table is made that can be spared.
--
-- letters  of the calls: "a" (97), "h" (104) and "r" (114)
-- answers  to which theirs are added, after the first count
-- a        where the arguments of the acquires begin
--
-- Returns where the next arguments begin, and whether an answer may be more than
-- a letter.
local function run_row(letters, answers, count, a)
    local window_us, deadline_us = ARGV[2] + 0, ARGV[3] + 0
    local ARGV, try, sub, byte = ARGV, redis.pcall, string.sub, string.byte
    local has_details = false
    local acquires, first_bucket = 0, bucket_at + 1
    for i = 1, #letters do
        if letters[i] ~= 114 then -- r
            acquires = acquires + 1
        end
    end
    local releases, before = #letters - acquires, lock_at

    local found = try('HMGET', state, 'admit', 'generation', 'until', 'max_token', 'min_token',
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
        -- A node that lost its data has lost the admission with it.
        refusal = 'Q'
    elseif now > deadline_us then
        -- The command may have waited for minutes in the socket of a paused
        -- node. Its sender has given up and can no longer release the lock.
        refusal = 'L'
    end

    local max_token = tonumber(found[4]) or 2^53 -- unknown: above all numbers
    local min_token = tonumber(found[5] or 0)
    min_token = min_token and min_token >= 0 and min_token or 2^53
    local new_max_token, max_token_digits, longest_ms = max_token, nil, 0
    local numbers -- in the buckets, once one of them was to be read
    local writers -- of the buckets, once there was a reader
    -- of a reader who must not be let in at once: i, a, bucket_at
    local others

    local values = releases > 0 and read_locks(before + 1, before + releases)
    local buckets, filled, deletes = {}, 0, 0
    for i = 1, #letters do
        local reply = refusal
        if letters[i] == 114 then
            lock_at = lock_at + 1
            local lock, token = ARGV[lock_at], ARGV[lock_at + token_offset]
            local value = values[lock_at - before]
            local is_reader = value ~= token and byte(token, 17) == 126 -- "~"
            if is_reader and not value and is_alone(lock, token) then
                -- The lock is deleted, as that of a writer.
                values[lock_at - before], value = token, token
            end
            if value == token then
                reply = 'D'
                deletes = deletes + 1
            else
                local pttl = not is_reader and try('PTTL', lock)
                if is_reader or pttl ~= -2 and type(value) ~= 'string' then
                    -- It may be a shared lock.
                    local _ = acquires > 0 and is_memory_short()
                    reply = run_safely('r', lock_at, 1,
                        lock_at + token_offset)
                    has_details = has_details or type(reply) == 'table'
                elseif pttl == -2 then
                    -- It means something only if nothing was lost.
                    local ok, is_whole = pcall(is_admitted, whole)
                    reply = ok and is_whole and 'F' or 'Q'
                else
                    reply, has_details = held(lock, pttl, value or nil), true
                end
            end
        else
            bucket_at = bucket_at + 1
            if not refusal then
                local lock, token = ARGV[a], ARGV[a + 1]
                local digits = sub(token, 1, 16)
                local number, highest = digits + 0, max_token
                if number - now > window_us or now - number > window_us then
                    -- A number far ahead of this clock would block the bucket
                    -- for correct ones; one far below may be lower than a
                    -- number that this node has lost.
                    reply = 'S'
                elseif letters[i] == 104 then -- h
                    local last_bucket = first_bucket + acquires - 1
                    local place = bucket_at - first_bucket + 1
                    numbers = numbers or read_buckets(first_bucket, last_bucket)
                    writers = writers or
                        read_writers(first_bucket, last_bucket, numbers)
                    highest = numbers[place]
                    reply = highest and number > highest and number > min_token and
                        writers[place] and byte(token, 58) ~= 43 and -- "+"
                        join_free(lock, token, ARGV[a + 2])
                    if reply == 'G' then
                        buckets[filled + 1] = ARGV[bucket_at] .. 's'
                        filled = filled + 2
                        buckets[filled] = digits .. ':' .. writers[place]
                    elseif reply then
                        has_details = true
                    else
                        others = others or {}
                        others[#others + 1] = {i, a, bucket_at}
                    end
                else
                    if number <= max_token then
                        numbers = numbers or
                            read_buckets(first_bucket, first_bucket + acquires - 1)
                        highest = numbers[bucket_at - first_bucket + 1]
                        if highest and highest < min_token then
                            highest = min_token
                        end
                    end
                    -- GET spares the table that SET answers OK with.
                    local is_above = highest and number > highest
                    local value = is_above and (is_short and {err = OOM} or
                        try('SET', lock, token, 'NX', 'GET', 'PX', ARGV[a + 2]))
                    if type(value) == 'table' and not is_oom(value) and
                        may_take(lock) then
                        value = try('SET', lock, token, 'NX', 'GET', 'PX',
                            ARGV[a + 2])
                    end
                    if is_above and not value then
                        reply = 'G'
                    else
                        reply, has_details =
                            not_set(lock, value, highest), true
                    end
                end
                if reply == 'G' then
                    -- Only now: a number that was not granted must not make
                    -- others stale.
                    buckets[filled + 1] = ARGV[bucket_at]
                    filled = filled + 2
                    buckets[filled] = digits
                    local ttl_ms = ARGV[a + 2] + 0
                    longest_ms = ttl_ms > longest_ms and ttl_ms or longest_ms
                    if number > new_max_token then
                        new_max_token, max_token_digits = number, digits
                    end
                end
            end
            a = a + (letters[i] == 104 and 4 or 3)
        end
        answers[count + i] = reply
    end

    if deletes > 0 then
        local deleted = deletes == releases and
            try('DEL', unpack(ARGV, before + 1, lock_at))
        local is_reported = (tonumber(found[6]) or 0) > now
        if is_reported or deleted ~= deletes then
            has_details = true
            local at = before
            for i = count + 1, count + #letters do
                local is_release = letters[i - count] == 114
                at = is_release and at + 1 or at
                -- Not each D: that of a reader has been done above.
                if is_release and
                    values[at - before] == ARGV[at + token_offset] then
                    -- The node may deny its user one of the locks.
                    local one = deleted == deletes or try('DEL', ARGV[at])
                    if type(one) == 'table' then
                        answers[i] = one
                    elseif is_reported then
                        answers[i] = {'DELETED',
                            announce(ARGV[at], ARGV[at + token_offset])}
                    end
                end
            end
        end
    end

    if filled > 0 then
        local raised, until_us = generation, now + longest_ms * 1000
        if generation == 0 then
            local last = tonumber(kept[2]) or 0
            raised = last >= 0 and last < 2^53 and last + 1 or 1
            buckets[filled + 1] = 'generation'
            buckets[filled + 2] = string.format('%d', raised)
        end
        local known_us, promised_until = tonumber(kept[3]), kept[3]
        if not (known_us and known_us >= until_us and known_us < 2^53) then
            promised_until = string.format('%d',
                math.ceil(until_us / 100000) * 100000)
            buckets[#buckets + 1] = 'until'
            buckets[#buckets + 1] = promised_until
        end
        if max_token_digits then
            buckets[#buckets + 1] = 'max_token'
            buckets[#buckets + 1] = max_token_digits
        end
        local written = try('HSET', state, unpack(buckets))
        if type(written) ~= 'table' then
            generation = raised
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
    for _, reader in ipairs(others or {}) do
        local reply = run_safely('h', reader[2], 1, reader[2] + 1,
            reader[3])
        answers[count + reader[1]] = reply
        has_details = has_details or type(reply) == 'table'
    end
    return a, has_details
end

