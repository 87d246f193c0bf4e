-- SPDX-License-Identifier: MIT
-- Functions of the script, and the head of run(), the function that runs one call:
-- each file in between is a part of its body, and single.lua ends it.
local now_ms = math.floor(now / 1000)

-- Whether the caller may count votes of this node. The replication ID at the
-- end of the admission belongs to the data: it changes if the node becomes a
-- replica, even for a moment. It is read when the first call of the batch asks.
-- Nothing else runs in between, and calls that write it have their own batches.
--
-- found  what kept is to be, if the caller has read it
local function is_admitted(found)
    kept = kept or found or
        redis.call('HMGET', state, 'admit', 'generation', 'until', 'max_token')
    if type(kept[1]) == 'string' then
        local admit = ARGV[1]
        kept[1] = kept[1] == admit and
            string.find(redis.call('INFO', 'replication'),
                'master_replid:' .. string.sub(admit, -40), 1, true) ~= nil
    end
    return kept[1]
end

-- The node's generation, which counts the probes that found it admitted and the
-- batches that promised something; 0: this is none of them.
local generation = 0

-- Above maxmemory the node refuses commands that may need memory (OOM), unless
-- the script has written before, by a command that needs none and whatever that
-- changed: Redis does not stop a script half way. So
--
--   what is about locks that are there, and the state itself, goes on: it takes
--   no more room than before, but for a few texts. If it is refused, nothing of
--   this script is written yet, and it runs again: run_safely.
--   what sets a new lock is refused, whatever the batch has written before it.
local OOM = "OOM command not allowed when used memory > 'maxmemory'."

-- Whether this is the error, raised or returned.
local function is_oom(reply)
    local text = type(reply) == 'table' and reply.err or reply
    return type(text) == 'string' and string.sub(text, 1, 4) == 'OOM '
end

-- Whether the node is above maxmemory. It shows only before anything is written:
-- so it is asked before what needs no memory, if a new lock may follow; and this
-- command writes nothing.
local is_short -- nil: not known; a new lock may be tried
local function is_memory_short()
    if is_short == nil then
        is_short = is_oom(redis.pcall('ZADD', string.sub(state, 1,
            -#'state' - 1) .. 'tombstone:', 'XX', '0', ''))
    end
    return is_short
end

-- From here on, the script is not refused for want of memory.
local function go_on_without_memory()
    redis.call('HDEL', state, '')
end

-- Records that the node promises something. Its generation rises once a batch:
-- older data that is put back afterwards has a lower one. Its promises have
-- ended at until, by the node's clock, which is rounded up to 0.1 s: so few of
-- many promises have to write it. Only an admission lowers it.
--
-- No bucket has a number above max_token, the highest fencing token of the state. So
-- a number above it is above that of its bucket, which most calls then need not
-- read. Whatever writes a number into a bucket raises max_token in the same command.
-- The first admission makes it. A state that lost it gets none before the next
-- one, as its buckets may have any number.
--
-- ttl_ms        as ARGV has it
-- bucket, digits  of a new lock; nil: there is none
-- is_above      whether the number is above max_token, and so becomes it
-- field, value  to be written as well; nil: there is none
local function promise(ttl_ms, bucket, digits, is_above, field, value)
    local until_us, known_us = now + ttl_ms * 1000, tonumber(kept[3])
    -- what is no time of ours is overwritten
    if not (known_us and known_us >= until_us and known_us < 2^53) then
        local promised_until = string.format('%d',
            math.ceil(until_us / 100000) * 100000)
        redis.call('HSET', state, 'until', promised_until)
        kept[3] = promised_until
    end
    local raised = generation
    if generation == 0 then
        raised = tonumber(kept[2]) or 0
        raised = raised >= 0 and raised < 2^53 and raised + 1 or 1
    end
    local text = string.format('%d', raised)
    -- A field may be written twice: that costs less than a list of them.
    redis.call('HSET', state, 'generation', text, bucket or 'generation', digits or text,
        is_above and 'max_token' or bucket or 'generation', digits or text, field or 'generation',
        value or text)
    -- Only now: a server that learned of a generation which is not there would take
    -- this data for older data.
    generation = raised
end

-- Whether servers listen to announcements.
local function is_listened()
    local until_us = redis.pcall('HGET', state, 'listened_until')
    return (tonumber(until_us) or 0) > now
end

-- A writer that readers keep out leaves this among them. While it is there, which
-- is not for long, no more readers get in; and it keeps the lock for a writer
-- when the last of them has left.
local INTENT, INTENT_MS = '0000000000000000~', 500

-- How many hold a shared lock; 0: a writer only wants it. nil: it is none, or
-- there is an error, which follows.
local function readers(lock)
    local last = redis.pcall('ZRANGE', lock, '0', '0', 'REV', 'WITHSCORES')
    -- of ours: it has a token, which has a "~", and ends
    if last.err or not last[1] or string.byte(last[1], 17) ~= 126 or
        redis.call('PTTL', lock) < 0 then
        return nil, last.err and last
    end
    local holders = redis.pcall('ZCOUNT', lock, now_ms, '+inf')
    local intent = redis.pcall('ZSCORE', lock, INTENT)
    if type(holders) ~= 'number' or type(intent) == 'table' then
        return nil, type(intent) == 'table' and intent or holders
    end
    return holders - ((tonumber(intent) or 0) >= now_ms and 1 or 0)
end

-- The highest number of a writer in a bucket, in digits: shared.lua.
--
-- record   that readers left beside the number in the bucket
-- highest  that number
local function writer_in(record, highest)
    local of, number = string.match(record or '', '^(%d+):(%d+)$')
    return of and of + 0 == highest and number or
        string.format('%.0f', highest)
end

-- Whether a writer may set a lock that is no text, as nobody holds it. Otherwise
-- it has left its intent.
local function may_take(lock)
    local holders = readers(lock)
    if holders and is_memory_short() then
        if holders == 0 then
            error(OOM, 0)
        end
        return false
    end
    if holders == 0 then
        return redis.pcall('DEL', lock) == 1
    end
    if holders then
        local until_ms = now_ms + INTENT_MS
        redis.pcall('ZADD', lock, until_ms, INTENT)
        redis.pcall('PEXPIREAT', lock, until_ms, 'GT')
    end
    return false
end

-- The reply if a lock is held by a key of any type, with or without TTL. A sorted
-- set of tokens is a shared lock, whose holders are counted; a key of another type
-- has an empty value. Only its first 256 bytes: a token has at most 255, so this
-- shows whether the whole value is equal, and bounds the reply.
--
-- HELD pttl value | SHARED pttl holders
--
-- pttl   or the error at reading it, which is then the reply
-- value  whole or so much of it; nil: it was not read
local function held(lock, pttl, value)
    value = value or redis.pcall('GETRANGE', lock, '0', '255')
    if type(pttl) == 'table' then
        return pttl
    end
    if type(value) == 'table' and string.find(value.err, '^WRONGTYPE') then
        local holders = readers(lock)
        if holders and holders > 0 then
            return {'SHARED', pttl, holders}
        end
        value = ''
    end
    return type(value) == 'table' and value or
        {'HELD', pttl, string.sub(value, 1, 256)}
end

-- What shared.lua keeps, and makes when a call needs it: the two forms of the
-- call's token, and functions.
local exclusive, shared, settle, join, leave, cannot_join
local with_key, remember, forget

-- Runs one call. Its n locks, if it is about locks, are the arguments from
-- ARGV[a] on; the other ones stand from ARGV[b] on, but the bucket of an acquire of
-- one lock is ARGV[s]. Returns the reply, or raises the error that becomes the
-- reply.
--
-- One function for all kinds of call, because each batch creates its functions
-- anew.
local function run(kind, a, n, b, s)

